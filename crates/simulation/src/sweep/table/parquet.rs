//! A table as Parquet: a column of numbers is DOUBLE, any other a UTF-8 text; all may be empty. One row
//! group, no compression. The file's metadata has what the columns are, as JSON under [`COLUMNS`].

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::Value;

use super::super::file::text_of;
use super::column::Column;

/// The key under which the file's metadata lists name, unit and meaning of each column.
const COLUMNS: &str = "durawarp.columns";

pub(super) fn bytes(columns: &[Column], rows: &[Vec<Value>]) -> Result<Vec<u8>, String> {
    written(columns, rows).map_err(|error| format!("cannot write Parquet: {error}"))
}

fn written(columns: &[Column], rows: &[Vec<Value>]) -> Result<Vec<u8>, ParquetError> {
    let is_number = |at: usize| {
        let mut cells = rows.iter().map(|row| &row[at]).filter(|cell| !cell.is_null()).peekable();
        cells.peek().is_some() && cells.all(Value::is_number)
    };
    let numbers: Vec<bool> = (0..columns.len()).map(is_number).collect();
    let fields = columns.iter().zip(&numbers).map(|(column, number)| {
        let (physical, logical) =
            if *number { (Physical::DOUBLE, None) } else { (Physical::BYTE_ARRAY, Some(LogicalType::String)) };
        let field = Type::primitive_type_builder(&column.name, physical);
        field.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build().map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("results").with_fields(fields).build()?;
    let described = serde_json::to_string(columns).unwrap_or_default();
    let properties = WriterProperties::builder();
    let properties =
        properties.set_key_value_metadata(Some(vec![KeyValue::new(COLUMNS.to_owned(), described)])).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (at, number) in numbers.iter().enumerate() {
        let Some(mut column) = group.next_column()? else { break };
        let cells: Vec<&Value> = rows.iter().map(|row| &row[at]).collect();
        // Parquet stores the values without the empty cells; the levels say which cells those are.
        let levels: Vec<i16> = cells.iter().map(|cell| i16::from(!cell.is_null())).collect();
        let present = cells.into_iter().filter(|cell| !cell.is_null());
        if *number {
            let values: Vec<f64> = present.filter_map(Value::as_f64).collect();
            column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        } else {
            let values: Vec<ByteArray> = present.map(|cell| ByteArray::from(text_of(cell).into_bytes())).collect();
            column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        }
        column.close()?;
    }
    group.close()?;
    writer.into_inner()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};

    use super::*;

    #[test]
    fn it_is_read_back() {
        let columns = vec![Column::new("a key", "", ""), Column::new("value", "ns", "It takes")];
        let rows = vec![vec!["x".into(), 1.into()], vec![Value::Null, 2.5.into()], vec!["z".into(), Value::Null]];
        let bytes = written(&columns, &rows).unwrap();
        let path = std::env::temp_dir().join(format!("durawarp-{}.parquet", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let about = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let told = about.iter().find(|pair| pair.key == COLUMNS).and_then(|pair| pair.value.as_deref()).unwrap();
        let told: Value = serde_json::from_str(told).unwrap();
        assert_eq!(told[1], serde_json::json!({"name": "value", "unit": "ns", "meaning": "It takes"}));
        let rows: Vec<String> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        std::fs::remove_file(path).unwrap();
        assert_eq!(rows, [r#"{a key: "x", value: 1.0}"#, "{a key: null, value: 2.5}", r#"{a key: "z", value: null}"#]);
    }
}
