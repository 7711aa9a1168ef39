//! What the API looks like, as an `OpenAPI` 3.1 document: made of the router's entries and of the types that are read and
//! written, so that it cannot say anything else than what is done.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::refusal::{ContractError, FrameworkError};
use super::router::{Audience, ENTRIES, Entry};
use crate::routes;

/// What a route looks like.
#[derive(Clone, Debug)]
pub struct Operation {
    id: &'static str,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: BTreeMap<u16, Value>,
}

impl Operation {
    /// One that takes nothing.
    #[must_use]
    pub fn new(id: &'static str, summary: &'static str) -> Self {
        Self { id, summary, parameters: Vec::new(), body: None, answers: BTreeMap::new() }
    }

    /// It has a part of its path left open.
    #[must_use]
    pub fn at(self, name: &'static str, description: &'static str) -> Self {
        self.parameter(json!({"name": name, "in": "path", "required": true, "description": description,
            "schema": {"type": "string"}}))
    }

    /// It looks into the query.
    #[must_use]
    pub fn query(self, name: &'static str, description: &'static str) -> Self {
        self.parameter(json!({"name": name, "in": "query", "description": description, "schema": {"type": "string"}}))
    }

    /// It looks at a header.
    #[must_use]
    pub fn header(self, name: &'static str, description: &'static str) -> Self {
        self.parameter(json!({"name": name, "in": "header", "description": description, "schema": {"type": "string"}}))
    }

    /// It takes a body of JSON.
    #[must_use]
    pub fn takes(mut self, schema: Value) -> Self {
        self.body = Some(schema);
        self
    }

    /// It may answer this, as JSON.
    #[must_use]
    pub fn answer(self, status: u16, description: &'static str, schema: Value) -> Self {
        self.answer_of(status, description, Some(("application/json", schema)))
    }

    /// It may answer this, as something else, or without a body.
    #[must_use]
    pub fn answer_of(mut self, status: u16, description: &'static str, content: Option<(&'static str, Value)>) -> Self {
        let mut answer = json!({"description": description});
        if let Some((media_type, schema)) = content {
            answer["content"] = json!({media_type: {"schema": schema}});
        }
        self.answers.insert(status, answer);
        self
    }

    fn parameter(mut self, parameter: Value) -> Self {
        self.parameters.push(parameter);
        self
    }

    fn into_value(self, audience: Audience, schemas: &mut Schemas) -> Value {
        let refused = schemas.answered::<ContractError>();
        let this = match audience {
            // Told as the end of the socket.
            Audience::Sockets => self,
            Audience::Public => self.answer(403, "The page is none of those that may (`origin_not_allowed`)", refused),
            Audience::Callers | Audience::Readers => self
                .answer(401, "The caller did not say who it is (`unauthenticated`)", refused.clone())
                .answer(403, "The caller may not (`forbidden`), or the page (`origin_not_allowed`)", refused.clone())
                .answer(
                    503,
                    "Too much is asked at once (`overloaded`), or nobody can say now who calls \
                     (`review_unavailable`)",
                    refused,
                ),
        };
        let Self { id, summary, parameters, body, answers } = this;
        let mut answers: Map<_, _> = answers.into_iter().map(|(status, answer)| (status.to_string(), answer)).collect();
        let wrong = schemas.answered::<FrameworkError>();
        answers.insert(
            "default".to_owned(),
            json!({"description": "The request is wrong as such", "content": {"application/json": {"schema": wrong}}}),
        );
        let mut operation = json!({"operationId": id, "summary": summary, "responses": answers});
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some(schema) = body {
            operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
        }
        // Nothing at all is enough where the operator lets everybody call.
        operation["security"] = match audience {
            Audience::Public => json!([]),
            Audience::Callers => json!([{"token": []}, {}]),
            Audience::Readers | Audience::Sockets => json!([{"token": []}, {"streamToken": []}, {}]),
        };
        operation
    }
}

/// The types that are read and written, by name.
#[derive(Debug)]
pub struct Schemas {
    sent: SchemaGenerator,
    answered: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self {
            sent: settings.clone().for_deserialize().into_generator(),
            answered: settings.for_serialize().into_generator(),
        }
    }

    /// A type that clients send.
    pub fn sent<T: JsonSchema>(&mut self) -> Value {
        self.sent.subschema_for::<T>().to_value()
    }

    /// A type that clients get.
    pub fn answered<T: JsonSchema>(&mut self) -> Value {
        self.answered.subschema_for::<T>().to_value()
    }

    fn into_value(mut self) -> Map<String, Value> {
        let mut all = self.sent.take_definitions(true);
        all.append(&mut self.answered.take_definitions(true));
        all
    }
}

/// The document.
#[must_use]
pub fn document() -> String {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for Entry { route, method, path, audience } in &ENTRIES {
        let operation = routes::operation(*route, &mut schemas).into_value(*audience, &mut schemas);
        paths.entry(*path).or_insert_with(|| json!({}))[method.as_str().to_ascii_lowercase()] = operation;
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Cofferdam",
            "description": "Runs programs as hardened pods of a Kubernetes cluster.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas.into_value(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A token that the operator gives out, or one of the cluster's for the service's audience."},
                "streamToken": {"type": "apiKey", "in": "query", "name": "access_token",
                    "description": "What a session was created with: it opens the streams of that session."},
            },
        },
    });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests;
