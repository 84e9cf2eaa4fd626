//! The `fred` crate, in both protocols.

use std::collections::BTreeSet;
use std::time::Duration;

use fred::clients::ExclusivePool;
use fred::prelude::*;
use fred::types::RespVersion;
use futures::TryStreamExt;

use crate::Outcome;

/// The same work in RESP2 and in RESP3.
pub(crate) async fn run(port: u16) -> Outcome {
    for (version, database) in [(RespVersion::RESP2, 6), (RespVersion::RESP3, 7)] {
        let mut config = Config::from_url(&format!("redis://127.0.0.1:{port}/{database}"))?;
        config.version = version;
        let client = Client::new(config.clone(), None, None, None);
        client.init().await?;
        client.flushall::<()>(false).await?;
        strings(&client).await?;
        expiry(&client).await?;
        pipelines(&client).await?;
        transactions(&client, config).await?;
        scan(&client).await?;
        errors(&client).await?;
        client.quit().await?;
    }
    Ok(())
}

async fn strings(c: &Client) -> Outcome {
    assert_eq!(
        c.set::<String, _, _>("s", "one", None, None, false).await?,
        "OK"
    );
    assert_eq!(
        c.get::<Option<String>, _>("s").await?,
        Some("one".to_owned())
    );
    assert_eq!(c.get::<Option<String>, _>("missing").await?, None);
    let absent_only = Some(SetOptions::NX);
    assert!(
        c.set::<Value, _, _>("s", "two", None, absent_only, false)
            .await?
            .is_null()
    );
    let present_only = Some(SetOptions::XX);
    assert_eq!(
        c.set::<String, _, _>("s", "two", None, present_only, true)
            .await?,
        "one"
    );
    assert_eq!(c.append::<i64, _, _>("s", "!").await?, 4);
    assert_eq!(c.strlen::<i64, _>("s").await?, 4);
    assert_eq!(c.setrange::<i64, _, _>("s", 1, "OW").await?, 4);
    assert_eq!(c.getdel::<String, _>("s").await?, "tOW!");
    assert_eq!(c.incr_by::<i64, _>("n", 41).await?, 41);
    assert_eq!(c.incr::<i64, _>("n").await?, 42);
    assert_eq!(c.decr_by::<i64, _>("n", 2).await?, 40);
    assert_eq!(c.incr_by_float::<f64, _>("f", 0.5).await?, 0.5);
    c.mset(vec![("a", "1"), ("b", "2")]).await?;
    assert_eq!(c.msetnx::<i64, _>(vec![("a", "3"), ("z", "4")]).await?, 0);
    let found: Vec<Option<String>> = c.mget(vec!["a", "b", "z"]).await?;
    assert_eq!(found, [Some("1".to_owned()), Some("2".to_owned()), None]);
    let binary: &[u8] = b"\x00\xff\r\n";
    c.set::<(), _, _>("raw", binary, None, None, false).await?;
    assert_eq!(c.get::<Vec<u8>, _>("raw").await?, binary);
    assert_eq!(c.exists::<i64, _>(vec!["a", "b", "z"]).await?, 2);
    assert_eq!(c.del::<i64, _>(vec!["a", "b", "z"]).await?, 2);
    Ok(())
}

async fn expiry(c: &Client) -> Outcome {
    c.set::<(), _, _>("e", 1, Some(Expiration::PX(400)), None, false)
        .await?;
    let left: i64 = c.pttl("e").await?;
    assert!((1..=400).contains(&left), "{left} ms left of 400");
    tokio::time::sleep(Duration::from_millis(450)).await;
    assert_eq!(c.get::<Option<i64>, _>("e").await?, None);
    c.set::<(), _, _>("e", 1, None, None, false).await?;
    assert_eq!(c.ttl::<i64, _>("e").await?, -1);
    assert_eq!(c.expire::<i64, _>("e", 100, None).await?, 1);
    assert!((99..=100).contains(&c.ttl::<i64, _>("e").await?));
    assert_eq!(c.persist::<i64, _>("e").await?, 1);
    assert_eq!(c.ttl::<i64, _>("missing").await?, -2);
    Ok(())
}

async fn pipelines(c: &Client) -> Outcome {
    let pipe = c.pipeline();
    for i in 0..200 {
        pipe.set::<(), _, _>(format!("p{i}"), i, None, None, false)
            .await?;
        pipe.get::<(), _>(format!("p{i}")).await?;
    }
    let replies: Vec<Value> = pipe.all().await?;
    assert_eq!(replies.len(), 400);
    for (i, pair) in replies.chunks(2).enumerate() {
        assert_eq!(pair[0].as_string().as_deref(), Some("OK"));
        assert_eq!(pair[1].as_string(), Some(i.to_string()));
    }
    Ok(())
}

/// WATCH belongs to a connection, so the watching side takes one of its own from a pool.
async fn transactions(other: &Client, config: Config) -> Outcome {
    let pool = ExclusivePool::new(config, None, None, None, 1)?;
    pool.init().await?;
    let c = pool.acquire().await;
    let sum = |c: &Client| {
        let transaction = c.multi();
        async move {
            transaction
                .set::<(), _, _>("t", 1, None, None, false)
                .await?;
            transaction.incr::<(), _>("t").await?;
            transaction.get::<(), _>("t").await?;
            transaction.exec::<Value>(true).await
        }
    };
    let (ok, two, text): (String, i64, String) = sum(&c).await?.convert()?;
    assert_eq!((ok.as_str(), two, text.as_str()), ("OK", 2, "2"));
    c.watch("t").await?;
    assert!(
        !sum(&c).await?.is_null(),
        "nobody else wrote the watched key"
    );
    c.watch("t").await?;
    other.set::<(), _, _>("t", 100, None, None, false).await?;
    assert!(
        sum(&c).await?.is_null(),
        "a transaction over a changed key went through"
    );
    assert_eq!(other.get::<i64, _>("t").await?, 100);
    drop(c);
    pool.quit().await?;
    Ok(())
}

async fn scan(c: &Client) -> Outcome {
    let keys: BTreeSet<String> = (0..300).map(|i| format!("scan:{i}")).collect();
    c.mset(keys.iter().map(|key| (key.as_str(), 1)).collect::<Vec<_>>())
        .await?;
    let found: Vec<Key> = c
        .scan_buffered("scan:*", Some(7), None)
        .try_collect()
        .await?;
    let seen: BTreeSet<String> = found
        .iter()
        .map(|key| key.as_str_lossy().into_owned())
        .collect();
    assert_eq!(seen, keys);
    Ok(())
}

async fn errors(c: &Client) -> Outcome {
    c.set::<(), _, _>("s", "text", None, None, false).await?;
    let error = c.incr::<i64, _>("s").await.unwrap_err();
    assert!(
        error
            .details()
            .contains("value is not an integer or out of range"),
        "{error}"
    );
    let info: String = c.info(None).await?;
    assert!(info.contains("redis_version:"), "{info}");
    assert!(c.dbsize::<i64>().await? > 500);
    Ok(())
}
