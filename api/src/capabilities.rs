//! What the API offers, as clients read it before they ask for a session: `GET /v1/capabilities`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::apps::{AppCard, Apps};
use crate::catalogue::Choices;
use crate::terms::Terms;
use crate::wire::Io;

/// The flags.
#[derive(Clone, Debug, clap::Args)]
pub struct CapabilitiesArgs {
    /// What the service is called, for people.
    #[arg(long, value_name = "TEXT", env = "COFFERDAM_API_DISPLAY_NAME", default_value = "Cofferdam")]
    pub display_name: String,

    /// What the service does, for people.
    #[arg(
        long,
        value_name = "TEXT",
        env = "COFFERDAM_API_DESCRIPTION",
        default_value = "Runs programs as hardened pods of a Kubernetes cluster"
    )]
    pub description: String,
}

/// What the API offers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// What the service is called, for people.
    pub display_name: String,
    /// What it does, for people.
    pub description: String,
    /// What sessions can do.
    pub features: Features,
    /// What a client may configure.
    pub config: ConfigForm,
    /// What it has to accept before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
    /// What it may start by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<AppCard>,
}

/// What sessions can do. What is advertised here has to be accepted: an app that asks for more is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Features {
    /// How output may be told apart.
    pub io: Vec<Io>,
    /// Whether a session serves ports.
    pub ports: bool,
    /// Whether sessions may outlive the runs of their programs.
    pub watch: bool,
}

/// What a client may configure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ConfigForm {
    /// A JSON Schema of `config` in a request for a session, from which clients make a form.
    pub schema: Value,
}

impl Features {
    /// What sessions can do as long as none outlives its program.
    #[must_use]
    pub fn ours() -> Self {
        Self { io: vec![Io::Tty, Io::Streams], ports: true, watch: false }
    }
}

/// The document, made for each request, so that new images are in it at once.
#[must_use]
pub fn capabilities(
    args: &CapabilitiesArgs,
    features: Features,
    choices: &Choices,
    terms: Option<&Terms>,
    apps: &Apps,
) -> Capabilities {
    Capabilities {
        display_name: args.display_name.clone(),
        description: args.description.clone(),
        features,
        config: ConfigForm { schema: schema(choices) },
        terms: terms.cloned(),
        apps: apps.cards(),
    }
}

fn schema(choices: &Choices) -> Value {
    let mut image = json!({
        "type": "string",
        "minLength": 1,
        "default": choices.default_image(),
        "title": "Image",
        "description": "What the program runs in.",
    });
    // Without a catalogue nothing can be chosen, and a list of one would look like a choice.
    let (key, value) = if choices.is_fixed() { ("readOnly", json!(true)) } else { ("enum", json!(choices.images())) };
    image[key] = value;
    json!({
        "type": "object",
        "required": ["image", "pullPolicy"],
        "properties": {
            "image": image,
            "pullPolicy": {
                "type": "string",
                "enum": ["missing", "always", "never"],
                "default": "missing",
                "title": "Pull policy",
                "description": "When a node pulls the image: where it does not have it, each time, or not at all.",
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CapabilitiesArgs,
    }

    fn document(choices: &Choices, terms: Option<&Terms>, apps: &Apps) -> Value {
        let args = Line::try_parse_from(["test"]).unwrap().args;
        serde_json::to_value(capabilities(&args, Features::ours(), choices, terms, apps)).unwrap()
    }

    #[test]
    fn without_a_catalogue_the_image_is_told_and_cannot_be_chosen() {
        let document = document(&Choices::fixed("runtime:1.2.3"), None, &Apps::default());
        assert_eq!(
            document,
            json!({
                "displayName": "Cofferdam",
                "description": "Runs programs as hardened pods of a Kubernetes cluster",
                "features": {"io": ["tty", "streams"], "ports": true, "watch": false},
                "config": {"schema": {
                    "type": "object",
                    "required": ["image", "pullPolicy"],
                    "properties": {
                        "image": {
                            "type": "string",
                            "minLength": 1,
                            "default": "runtime:1.2.3",
                            "title": "Image",
                            "description": "What the program runs in.",
                            "readOnly": true,
                        },
                        "pullPolicy": {
                            "type": "string",
                            "enum": ["missing", "always", "never"],
                            "default": "missing",
                            "title": "Pull policy",
                            "description":
                                "When a node pulls the image: where it does not have it, each time, or not at all.",
                        },
                    },
                }},
            })
        );
    }

    #[test]
    fn with_a_catalogue_the_image_is_one_of_a_list_whose_first_is_the_default() {
        let choices = Choices::of("runtime:1.2.3", vec!["runtime:1.3.0".to_owned(), "runtime:1.2.3".to_owned()], 20);
        let image = &document(&choices, None, &Apps::default())["config"]["schema"]["properties"]["image"];
        assert_eq!((&image["default"], &image["readOnly"]), (&json!("runtime:1.2.3"), &Value::Null));
        assert_eq!(image["enum"], json!(["runtime:1.2.3", "runtime:1.3.0"]));
    }

    #[test]
    fn terms_and_apps_are_told_where_there_are_any_and_no_more_of_apps_than_who_they_are() {
        let terms = Terms { version: "1".to_owned(), title: "T".to_owned(), body: "B".to_owned() };
        let apps =
            Apps::parse("apps.yaml", "a: {image: private/image, title: A, port: 80, env: {KEY: secret}}").unwrap();
        let document = document(&Choices::fixed("i"), Some(&terms), &apps);
        assert_eq!(document["terms"], json!({"version": "1", "title": "T", "body": "B"}));
        assert_eq!(document["apps"], json!([{"name": "a", "title": "A"}]));
        let text = document.to_string();
        assert!(!text.contains("private/image") && !text.contains("secret") && !text.contains("KEY"), "{text}");
        assert_eq!(document["features"].get("agents"), None);
    }
}
