//! The order in which an author named the members of their objects, kept beside the values, so that what is written
//! looks like what was read.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The names of an object's members in their order, the items of a list, or nothing of interest.
#[derive(Debug, Default)]
pub(super) enum Order {
    /// A single value.
    #[default]
    Leaf,
    /// A list.
    Items(Vec<Order>),
    /// An object.
    Members(Vec<(String, Order)>),
}

/// A value, to be written in an order.
pub(super) struct Ordered<'v> {
    pub(super) value: &'v Value,
    pub(super) order: Option<&'v Order>,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Object(members) => {
                let known: &[(String, Order)] = match self.order {
                    Some(Order::Members(known)) => known,
                    _ => &[],
                };
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, order) in known {
                    if let Some(value) = members.get(name) {
                        map.serialize_entry(name, &Ordered { value, order: Some(order) })?;
                    }
                }
                for (name, value) in members {
                    if !known.iter().any(|(known, _)| known == name) {
                        map.serialize_entry(name, &Ordered { value, order: None })?;
                    }
                }
                map.end()
            }
            Value::Array(items) => {
                let known: &[Order] = match self.order {
                    Some(Order::Items(known)) => known,
                    _ => &[],
                };
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for (index, value) in items.iter().enumerate() {
                    list.serialize_element(&Ordered { value, order: known.get(index) })?;
                }
                list.end()
            }
            single => single.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Order {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Order;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Order, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Order::Members(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Order, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Order::Items(items))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_unit<E>(self) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_none<E>(self) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Order, D::Error> {
        Order::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Order, D::Error> {
        Order::deserialize(deserializer)
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, data: A) -> Result<Order, A::Error> {
        data.variant::<IgnoredAny>().map(|_| Order::Leaf)
    }
}
