//! The `aerospike` crate, which speaks the wire itself and does not wrap the C client.

use std::time::Duration;

use aerospike::operations;
use aerospike::{
    BatchOperation, BatchPolicy, BatchReadPolicy, Bins, Client, ClientPolicy, Expiration,
    GenerationPolicy, Key, ReadPolicy, RecordExistsAction, ResultCode, Value, WritePolicy, as_bin,
    as_key, as_list, as_map, as_val,
};

use crate::Outcome;

/// Records, policies, operate, time to live and batches.
pub(crate) async fn run(port: u16) -> Outcome {
    let client = Client::new(&ClientPolicy::default(), &format!("127.0.0.1:{port}")).await?;
    assert!(client.is_connected());
    assert_eq!(client.nodes().len(), 1);
    records(&client).await?;
    policies(&client).await?;
    operate(&client).await?;
    time_to_live(&client).await?;
    batches(&client).await?;
    client.close().await?;
    Ok(())
}

/// The result code of a call that has to fail.
fn code<T>(result: aerospike::Result<T>) -> Option<ResultCode> {
    result.err().and_then(|error| error.server_result_code())
}

async fn records(client: &Client) -> Outcome {
    let (read, write) = (ReadPolicy::default(), WritePolicy::default());
    let key = as_key!("test", "rust", "record");
    let bins = [
        as_bin!("i", -5),
        as_bin!("f", 1.5),
        as_bin!("s", "text"),
        as_bin!("b", vec![0_u8, 255]),
        as_bin!("t", true),
        as_bin!("l", as_list!(1, "two", as_list!(3.0))),
        as_bin!("m", as_map!("a" => 1, "b" => as_list!(2))),
    ];
    client.put(&write, &key, &bins).await?;
    let record = client.get(&read, &key, Bins::All).await?;
    assert_eq!(record.generation, 1);
    assert_eq!(record.bins.len(), bins.len());
    for bin in &bins {
        assert_eq!(
            record.bins.get(&bin.name),
            Some(&bin.value),
            "bin {}",
            bin.name
        );
    }
    let some = client.get(&read, &key, Bins::from(["s", "none"])).await?;
    assert_eq!(some.bins.len(), 1);
    assert_eq!(some.bins.get("s"), Some(&Value::from("text")));
    let header = client.get(&read, &key, Bins::None).await?;
    assert!(header.bins.is_empty());
    assert!(client.exists(&read, &key).await?);
    let missing = as_key!("test", "rust", "missing");
    assert!(!client.exists(&read, &missing).await?);
    let absent = client.get(&read, &missing, Bins::All).await;
    assert_eq!(code(absent), Some(ResultCode::KeyNotFoundError));
    client.add(&write, &key, &[as_bin!("i", 7)]).await?;
    client.append(&write, &key, &[as_bin!("s", "!")]).await?;
    client.prepend(&write, &key, &[as_bin!("s", "<")]).await?;
    client.put(&write, &key, &[as_bin!("f", None)]).await?;
    let record = client.get(&read, &key, Bins::All).await?;
    assert_eq!(record.generation, 5);
    assert_eq!(record.bins.get("i"), Some(&Value::from(2)));
    assert_eq!(record.bins.get("s"), Some(&Value::from("<text!")));
    assert_eq!(record.bins.get("f"), None);
    assert!(client.delete(&write, &key).await?);
    assert!(!client.delete(&write, &key).await?);
    Ok(())
}

async fn policies(client: &Client) -> Outcome {
    let read = ReadPolicy::default();
    let key = as_key!("test", "rust", "policy");
    let only_new = WritePolicy {
        record_exists_action: RecordExistsAction::CreateOnly,
        send_key: true,
        ..WritePolicy::default()
    };
    client
        .put(&only_new, &key, &[as_bin!("a", 1), as_bin!("b", 1)])
        .await?;
    let again = client.put(&only_new, &key, &[as_bin!("a", 2)]).await;
    assert_eq!(code(again), Some(ResultCode::KeyExistsError));
    let expected = WritePolicy {
        generation_policy: GenerationPolicy::ExpectGenEqual,
        generation: 1,
        ..WritePolicy::default()
    };
    client.put(&expected, &key, &[as_bin!("a", 3)]).await?;
    let stale = client.put(&expected, &key, &[as_bin!("a", 4)]).await;
    assert_eq!(code(stale), Some(ResultCode::GenerationError));
    let replace = WritePolicy {
        record_exists_action: RecordExistsAction::ReplaceOnly,
        ..WritePolicy::default()
    };
    client.put(&replace, &key, &[as_bin!("a", 5)]).await?;
    let record = client.get(&read, &key, Bins::All).await?;
    assert_eq!((record.bins.len(), record.generation), (1, 3));
    assert_eq!(record.bins.get("a"), Some(&Value::from(5)));
    let missing = as_key!("test", "rust", "missing");
    let nothing = client.put(&replace, &missing, &[as_bin!("a", 1)]).await;
    assert_eq!(code(nothing), Some(ResultCode::KeyNotFoundError));
    Ok(())
}

async fn operate(client: &Client) -> Outcome {
    let write = WritePolicy::default();
    let key = as_key!("test", "rust", 42);
    client
        .put(&write, &key, &[as_bin!("i", 1), as_bin!("s", "text")])
        .await?;
    let (ten, mark, sign) = (as_bin!("i", 10), as_bin!("s", "!"), as_bin!("s", "<"));
    let work = [
        operations::add(&ten),
        operations::append(&mark),
        operations::prepend(&sign),
        operations::get_bin("i"),
        operations::get_bin("s"),
    ];
    let record = client.operate(&write, &key, &work).await?;
    assert_eq!(record.generation, 2);
    // The crate asks for an answer to every operation, so a write answers nil in its place.
    let answers = [
        Value::Nil,
        Value::Nil,
        Value::Nil,
        Value::from(11),
        Value::from("<text!"),
    ];
    assert_eq!(record.results.as_deref(), Some(answers.as_slice()));
    let new = as_bin!("n", "new");
    let record = client
        .operate(&write, &key, &[operations::put(&new), operations::get()])
        .await?;
    assert_eq!(record.bins.len(), 3);
    client
        .operate(&write, &key, &[operations::delete()])
        .await?;
    assert!(!client.exists(&ReadPolicy::default(), &key).await?);
    Ok(())
}

async fn time_to_live(client: &Client) -> Outcome {
    let read = ReadPolicy::default();
    let key = as_key!("test", "rust", vec![1_u8, 2, 3]);
    let lasting = |seconds| WritePolicy {
        expiration: Expiration::Seconds(seconds),
        ..WritePolicy::default()
    };
    client.put(&lasting(1), &key, &[as_bin!("x", 1)]).await?;
    client.touch(&lasting(100), &key).await?;
    let left = client.get(&read, &key, Bins::None).await?.time_to_live();
    let seconds = left.map_or(0, |left| left.as_secs());
    assert!(
        (97..=100).contains(&seconds),
        "{seconds} seconds left of 100"
    );
    client.put(&lasting(1), &key, &[as_bin!("x", 1)]).await?;
    // Times are whole seconds, and the last one counts in full.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(
        code(client.get(&read, &key, Bins::All).await),
        Some(ResultCode::KeyNotFoundError)
    );
    Ok(())
}

async fn batches(client: &Client) -> Outcome {
    let keys: Vec<Key> = (0..50).map(|i| as_key!("test", "rust-batch", i)).collect();
    for (i, key) in (0_i64..).zip(&keys) {
        client
            .put(
                &WritePolicy::default(),
                key,
                &[as_bin!("n", i), as_bin!("m", 1)],
            )
            .await?;
    }
    let read = BatchReadPolicy::default();
    let mut rows: Vec<BatchOperation> = keys
        .iter()
        .map(|key| BatchOperation::read(&read, key.clone(), Bins::from(["n"])))
        .collect();
    let missing = as_key!("test", "rust-batch", "missing");
    rows.push(BatchOperation::read(&read, missing, Bins::All));
    client.batch(&BatchPolicy::default(), &mut rows).await?;
    for (i, row) in (0_i64..).zip(&rows[..50]) {
        assert_eq!(row.result_code(), Some(ResultCode::Ok), "row {i}");
        let record = row.record().ok_or("a row without a record")?;
        assert_eq!(record.bins.len(), 1);
        assert_eq!(record.bins.get("n"), Some(&Value::from(i)));
    }
    assert_eq!(rows[50].result_code(), Some(ResultCode::KeyNotFoundError));
    assert!(rows[50].record().is_none());
    Ok(())
}
