//! Several clients at one browser, each with a tab of its own.

use serde_json::{Value, json};

use super::Rig;

fn reason(answer: &Value) -> &Value {
    &answer["error_info"]["details"]["reason"]
}

#[tokio::test]
async fn clients_work_at_the_same_time_and_none_takes_or_closes_the_tab_of_another() {
    // [BROWSER-53] [BROWSER-19] [ATTACH-1]
    let rig = Rig::start().await;
    // Of processes of their own; the server of the rig owns the browser.
    let (second, third) = (rig.beside().await, rig.beside().await);
    let first_tab = rig.open_in_front(&rig.here("login.html")).await;
    let opened = second.ask(json!({ "action": "tab_new", "url": rig.here("opener.html") })).await;
    let second_tab = opened["tab_id"].clone();
    assert!(second_tab.is_i64() && second_tab != first_tab, "{opened}");

    // Each is told which are its own.
    let own = |told: &Value, tab: &Value| {
        let rows = told["result"].as_array().expect("a list");
        rows.iter().any(|row| row["tab_id"] == *tab && row["opened_by_you"] == true)
    };
    let tabs = rig.done(json!({ "what": "tabs" })).await;
    assert!(own(&tabs, &first_tab) && !own(&tabs, &second_tab), "{tabs}");
    let rows = tabs["result"].as_array().expect("a list");
    let in_use: Vec<&Value> = rows.iter().filter(|row| row["in_use"] == true).collect();
    assert_eq!(in_use.len(), 1, "{tabs}");
    assert_eq!(in_use[0]["tab_id"], second_tab);

    // Side by side, without naming a tab.
    let title = json!({ "action": "execute_js", "script": "document.title" });
    for _ in 0..4 {
        let (one, two) = tokio::join!(rig.done(title.clone()), second.ask(title.clone()));
        assert_eq!((&one["tab_id"], &one["result"]), (&first_tab, &json!("login")), "{one}");
        assert_eq!((&two["tab_id"], &two["result"]), (&second_tab, &json!("opener")), "{two}");
    }
    // One that has no tab takes none of theirs, although the first one's is in front.
    for call in [title.clone(), json!({ "action": "fill", "selector": "#pw", "text": "x" })] {
        let refused = third.ask(call).await;
        assert_eq!(reason(&refused), "tab_in_use", "{refused}");
        assert_eq!(refused["error_info"]["guarantee"], "not_executed", "{refused}");
    }
    let close = json!({ "action": "tab_close" });
    let refused = third.ask(close.clone()).await;
    assert_eq!(refused["error_info"]["code"], "invalid_params", "{refused}");
    // Named, it is worked in; that does not make it one to close.
    let mut named = title.clone();
    named["tab_id"] = second_tab.clone();
    assert_eq!(third.ask(named).await["result"], "opener");
    assert_eq!(third.ask(title.clone()).await["tab_id"], second_tab);
    let refused = third.ask(close.clone()).await;
    assert_eq!(refused["error_info"]["code"], "invalid_params", "another opened it: {refused}");
    let closed = second.ask(close).await;
    assert_eq!(closed["result"]["tab_id"], second_tab, "{closed}");
    for client in [&second, &third] {
        let gone = client.ask(title.clone()).await;
        assert_eq!(reason(&gone), "own_tab_gone", "{gone}");
    }
    assert_eq!(rig.done(title).await["tab_id"], first_tab);
    second.close().await;
    third.close().await;
    rig.close().await;
}

#[tokio::test]
async fn the_next_owner_takes_from_no_client_the_tab_that_it_works_in() {
    // [BROWSER-19] [BROWSER-53] [ATTACH-5]
    let mut rig = Rig::start().await;
    let (second, third) = (rig.beside().await, rig.beside().await);
    let of_the_killed = rig.open_in_front(&rig.here("opener.html")).await;
    let login = rig.here("login.html");
    let opens = json!({ "action": "tab_new", "url": login, "background": false });
    let of_second = second.ask(opens).await["tab_id"].clone();
    rig.owner_is_killed().await;
    second.until_a_browser_is_there().await;
    let title = json!({ "action": "execute_js", "script": "document.title" });
    let refused = third.ask(title.clone()).await;
    assert_eq!(reason(&refused), "tab_in_use", "{refused}");
    let own = second.ask(title.clone()).await;
    assert_eq!((&own["tab_id"], &own["result"]), (&of_second, &json!("login")), "{own}");
    // The client of the server that was killed has gone with it, and the tab that it worked in is nobody's.
    second.ask(json!({ "action": "tab_close" })).await;
    let found = third.ask(title).await;
    assert_eq!(found["tab_id"], of_the_killed, "{found}");
    second.close().await;
    third.close().await;
    rig.close().await;
}
