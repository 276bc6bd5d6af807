//! The JSON Schema of a specification, from which other languages take their types.

use crate::run::RunSpec;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::Schema;
use serde_json::{Map, Value};

/// The schema of what a writer of a [`RunSpec`] writes. Draft 2020-12; every named type stands under `$defs`.
///
/// A key is required, null where there is nothing to say, or it may be absent and is never null.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(absent_is_not_null));
    settings.into_generator().into_root_schema_for::<RunSpec>()
}

/// Takes null from the values of keys that may be absent.
fn absent_is_not_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (key, property) in properties {
        if let Some(property) = property.as_object_mut().filter(|_| !required.contains(&Value::from(key.as_str()))) {
            without_null(property);
        }
    }
}

fn without_null(property: &mut Map<String, Value>) {
    let null = Value::from("null");
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| *name != null);
        if let [only] = &types[..] {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = property.get_mut("anyOf") else { return };
    choices.retain(|choice| choice.get("type") != Some(&null));
    if let [Value::Object(only)] = &choices[..] {
        let only = only.clone();
        property.remove("anyOf");
        property.extend(only);
    }
}
