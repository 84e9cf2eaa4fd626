//! The `redis` crate: its blocking connection in both protocols and its multiplexed one.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use redis::{
    AsyncTypedCommands, Client, Connection, ExistenceCheck, RedisResult, SetExpiry, SetOptions,
    TypedCommands, Value,
};

use crate::Outcome;

/// The blocking connection, in RESP2 and in RESP3.
pub(crate) fn blocking(port: u16) -> Outcome {
    for (protocol, database) in [("resp2", 0), ("resp3", 3)] {
        let address = format!("redis://127.0.0.1:{port}/{database}?protocol={protocol}");
        let client = Client::open(address)?;
        let mut connection = client.get_connection()?;
        redis::cmd("FLUSHDB").exec(&mut connection)?;
        strings(&mut connection)?;
        expiry(&mut connection)?;
        pipelines(&mut connection)?;
        transactions(&mut connection, &mut client.get_connection()?)?;
        errors(&mut connection)?;
        server(&mut connection, protocol)?;
    }
    Ok(())
}

fn strings(c: &mut Connection) -> Outcome {
    c.set("s", "one")?;
    assert_eq!(c.get("s")?, Some("one".to_owned()));
    assert_eq!(c.get("missing")?, None);
    let absent_only = SetOptions::default().conditional_set(ExistenceCheck::NX);
    assert_eq!(c.set_options("s", "two", absent_only)?, None);
    let present_only = SetOptions::default()
        .conditional_set(ExistenceCheck::XX)
        .get(true);
    assert_eq!(
        c.set_options("s", "two", present_only)?,
        Some("one".to_owned())
    );
    assert_eq!(c.append("s", "!")?, 4);
    assert_eq!(c.strlen("s")?, 4);
    assert_eq!(c.getrange("s", 1, -1)?, "wo!");
    assert_eq!(c.setrange("s", 1, "OW")?, 4);
    assert_eq!(c.get_del("s")?, Some("tOW!".to_owned()));
    assert_eq!(c.incr("n", 41)?, 41);
    assert_eq!(c.decr("n", 1)?, 40);
    let sum: f64 = redis::cmd("INCRBYFLOAT").arg("f").arg("0.1").query(c)?;
    assert!((sum - 0.1).abs() < 1e-15, "{sum}");
    c.mset(&[("a", "1"), ("b", "2")])?;
    assert!(!c.mset_nx(&[("a", "3"), ("z", "4")])?);
    assert_eq!(
        c.mget(&["a", "b", "z"])?,
        [Some("1".to_owned()), Some("2".to_owned()), None]
    );
    let binary: &[u8] = b"\x00\xff\r\n";
    let big = vec![b'x'; 3_000_000];
    for value in [binary, &big] {
        let _: () = redis::cmd("SET").arg("raw").arg(value).query(c)?;
        let found: Vec<u8> = redis::cmd("GET").arg("raw").query(c)?;
        assert!(
            found == value,
            "{} bytes came back as {}",
            value.len(),
            found.len()
        );
    }
    assert_eq!(c.del(&["a", "b", "z"])?, 2);
    Ok(())
}

fn expiry(c: &mut Connection) -> Outcome {
    c.set_options(
        "e",
        1,
        SetOptions::default().with_expiration(SetExpiry::PX(400)),
    )?;
    let left: i64 = redis::cmd("PTTL").arg("e").query(c)?;
    assert!((1..=400).contains(&left), "{left} ms left of 400");
    sleep(Duration::from_millis(450));
    assert_eq!(c.get("e")?, None);
    c.set_ex("e", 1, 100)?;
    let ttl = |c: &mut Connection| -> RedisResult<i64> { redis::cmd("TTL").arg("e").query(c) };
    assert!((99..=100).contains(&ttl(c)?));
    assert!(c.persist("e")?);
    assert_eq!(ttl(c)?, -1);
    assert!(c.expire("e", 50)?);
    assert!((49..=50).contains(&ttl(c)?));
    assert_eq!(c.del("e")?, 1);
    assert_eq!(ttl(c)?, -2);
    let pairs: Vec<(String, u32)> = (0..300).map(|i| (format!("scan:{i}"), i)).collect();
    c.mset(&pairs)?;
    let mut command = redis::cmd("SCAN");
    command
        .cursor_arg(0)
        .arg("MATCH")
        .arg("scan:*")
        .arg("COUNT")
        .arg(7);
    let seen = command
        .iter::<String>(c)?
        .collect::<RedisResult<BTreeSet<String>>>()?;
    assert_eq!(seen, pairs.into_iter().map(|(key, _)| key).collect());
    Ok(())
}

fn pipelines(c: &mut Connection) -> Outcome {
    let mut pipe = redis::pipe();
    for i in 0..200 {
        pipe.set(format!("p{i}"), i).ignore().get(format!("p{i}"));
    }
    let found: Vec<u32> = pipe.query(c)?;
    assert_eq!(found, (0..200).collect::<Vec<u32>>());
    Ok(())
}

fn transactions(c: &mut Connection, other: &mut Connection) -> Outcome {
    let found: (i64, String) = redis::pipe()
        .atomic()
        .set("t", 1)
        .ignore()
        .incr("t", 1)
        .get("t")
        .query(c)?;
    assert_eq!(found, (2, "2".to_owned()));
    // The first try sees a foreign write between WATCH and EXEC and must come to nothing.
    let mut tries = 0;
    let (last,): (i64,) = redis::transaction(c, &["t"], |c, pipe| {
        tries += 1;
        let before: i64 = redis::cmd("GET").arg("t").query(c)?;
        if tries == 1 {
            other.set("t", 100)?;
        }
        pipe.set("t", before + 1).ignore().incr("t", 0).query(c)
    })?;
    assert_eq!((tries, last), (2, 101));
    Ok(())
}

fn errors(c: &mut Connection) -> Outcome {
    let unknown = redis::cmd("NOSUCH").arg("a").exec(c).unwrap_err();
    let detail = unknown.detail().unwrap_or_default();
    assert!(
        detail.starts_with("unknown command 'NOSUCH', with args beginning with"),
        "{detail}"
    );
    c.set("s", "text")?;
    let not_number = redis::cmd("INCR").arg("s").exec(c).unwrap_err();
    assert_eq!(
        not_number.detail(),
        Some("value is not an integer or out of range")
    );
    Ok(())
}

fn server(c: &mut Connection, protocol: &str) -> Outcome {
    let info: String = redis::cmd("INFO").arg("server").query(c)?;
    assert!(info.contains("redis_version:"), "{info}");
    let limit: Value = redis::cmd("CONFIG").arg("GET").arg("maxmemory").query(c)?;
    let text = |s: &str| Value::BulkString(s.as_bytes().to_vec());
    let expected = match protocol {
        "resp2" => Value::Array(vec![text("maxmemory"), text("0")]),
        _ => Value::Map(vec![(text("maxmemory"), text("0"))]),
    };
    assert_eq!(limit, expected);
    Ok(())
}

/// Many requests in flight on one asynchronous connection.
pub(crate) async fn multiplexed(port: u16) -> Outcome {
    let client = Client::open(format!("redis://127.0.0.1:{port}/4?protocol=resp3"))?;
    let connection = client.get_multiplexed_async_connection().await?;
    let writes = (0..500_u32).map(|i| {
        let mut c = connection.clone();
        async move {
            c.set(format!("m{i}"), i).await?;
            redis::cmd("GET")
                .arg(format!("m{i}"))
                .query_async::<u32>(&mut c)
                .await
        }
    });
    let found = futures::future::try_join_all(writes).await?;
    assert_eq!(found, (0..500).collect::<Vec<u32>>());
    Ok(())
}
