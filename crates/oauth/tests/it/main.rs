//! Tokens of an issuer that publishes its keys over HTTP [HTTP-9].

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail as tests do"
)]

mod issuer;

use std::sync::Arc;

use raincheck_core::scope::Scope;
use raincheck_loopback::{Denied, Issued};
use raincheck_oauth::OAuth;
use serde_json::{Value, json};

use crate::issuer::{Issuer, Key, RESOURCE, from_now, text};

/// Makes what believes the tokens of an issuer that have the scope `tasks`.
fn checker(issuer: &Issuer) -> Arc<dyn Issued> {
    let oauth = OAuth::new(&issuer.url, RESOURCE).expect("settings");
    oauth.require("tasks").expect("a scope").checker()
}

/// Returns the owner of a good token.
fn ada(issuer: &Issuer) -> Result<Scope, Denied> {
    Ok(Scope::new(format!("{}#ada", issuer.url)))
}

#[tokio::test]
async fn a_token_of_each_kind_says_whose_the_tasks_are() {
    // [HTTP-9, SCOPE-1]
    let keys = [("a", Key::es256()), ("b", Key::ed25519()), ("c", Key::rsa())];
    let issuer = Issuer::new(keys.iter().map(|(kid, key)| key.public(kid)).collect()).await;
    let checker = checker(&issuer);
    for (kid, key) in &keys {
        for kid in [Some(*kid), None] {
            for typ in ["JWT", "at+jwt", "application/at+jwt"] {
                let token = key.sign(kid, typ, &issuer.claims());
                assert_eq!(checker.owner(&token).await, ada(&issuer), "{kid:?} {typ}");
            }
        }
    }
    let mut listed = issuer.claims();
    listed["aud"] = json!(["https://elsewhere.example", RESOURCE]);
    listed["scp"] = json!(["tasks"]);
    listed.as_object_mut().expect("claims").remove("scope");
    let token = keys[0].1.sign(Some("a"), "JWT", &listed);
    assert_eq!(checker.owner(&token).await, ada(&issuer), "lists");
    assert_eq!(issuer.n_fetches(), 1, "its keys are fetched once");
}

#[tokio::test]
async fn what_is_wrong_with_a_token_makes_it_nobodys() {
    // [HTTP-9]
    let (key, other) = (Key::es256(), Key::es256());
    let issuer = Issuer::new(vec![key.public("a")]).await;
    let checker = checker(&issuer);
    let with = |name: &str, value: Value| {
        let mut claims = issuer.claims();
        claims[name] = value;
        claims
    };
    let without = |name: &str| {
        let mut claims = issuer.claims();
        claims.as_object_mut().expect("claims").remove(name);
        claims
    };
    for claims in [
        with("iss", json!("https://elsewhere.example")),
        with("iss", json!(format!("{}/", issuer.url))),
        with("aud", json!("https://mcp.example.org/other")),
        with("aud", json!([])),
        with("exp", json!(from_now(-120))),
        with("nbf", json!(from_now(120))),
        with("sub", json!("")),
        with("sub", json!("x".repeat(256))),
        with("cnf", json!({"jkt": "x"})),
        without("iss"),
        without("aud"),
        without("exp"),
        without("sub"),
    ] {
        let token = key.sign(Some("a"), "JWT", &claims);
        assert_eq!(checker.owner(&token).await, Err(Denied::Unknown), "{claims}");
    }
    let claims = issuer.claims();
    let sound = key.sign(Some("a"), "JWT", &claims);
    let (message, signature) = sound.rsplit_once('.').expect("a signature");
    let foreign = other.sign(Some("a"), "JWT", &claims);
    let unsigned = |alg: &str| {
        format!("{}.{}.", text(json!({"alg": alg}).to_string()), text(claims.to_string()))
    };
    for (token, what) in [
        (foreign.as_str(), "another's key"),
        (&format!("{message}.{}", text("x".repeat(64))), "another signature"),
        (&format!("{}.{signature}", message.replacen('.', "x.", 1)), "another header"),
        (&unsigned("none"), "no signature"),
        (&unsigned("HS256"), "a secret that everybody knows"),
        (&key.sign(Some("a"), "logout+jwt", &claims), "another kind"),
        (
            &key.sign_as(&json!({"alg": "ES256", "kid": "a", "crit": ["x"], "x": 1}), &claims),
            "what is not known",
        ),
        (&key.sign_as(&json!({"alg": "RS256", "kid": "a"}), &claims), "another kind of key"),
        ("", "nothing"),
        ("a.b.c", "noise"),
        ("0123456789abcdef0123456789abcdef", "a token of a configuration"),
    ] {
        assert_eq!(checker.owner(token).await, Err(Denied::Unknown), "{what}");
    }
    assert_eq!(checker.owner(&sound).await, ada(&issuer), "and the sound one is believed");
}

#[tokio::test]
async fn a_sound_token_without_the_scope_is_too_narrow() {
    // [HTTP-9]
    let key = Key::es256();
    let issuer = Issuer::new(vec![key.public("a")]).await;
    let checker = checker(&issuer);
    for scope in ["", "other", "tasks:read", "TASKS", "xtasks"] {
        let mut claims = issuer.claims();
        claims["scope"] = scope.into();
        let token = key.sign(Some("a"), "JWT", &claims);
        assert_eq!(checker.owner(&token).await, Err(Denied::TooNarrow), "{scope}");
    }
}

#[tokio::test]
async fn a_key_that_is_not_known_is_asked_for_once_and_again_after_a_pause() {
    // [HTTP-9]
    let (old, new) = (Key::es256(), Key::es256());
    let issuer = Issuer::new(vec![old.public("old")]).await;
    let checker = checker(&issuer);
    let strange = new.sign(Some("new"), "JWT", &issuer.claims());
    for _ in 0..20 {
        assert_eq!(checker.owner(&strange).await, Err(Denied::Unknown));
    }
    assert_eq!(issuer.n_fetches(), 1, "strangers make no traffic");
    let known = old.sign(Some("old"), "JWT", &issuer.claims());
    assert_eq!(checker.owner(&known).await, ada(&issuer));
}

#[tokio::test]
async fn many_tokens_at_once_wait_for_one_fetch_also_when_the_first_goes_away() {
    // [HTTP-9]
    let key = Key::es256();
    let issuer = Issuer::new(vec![key.public("a")]).await;
    let checker = checker(&issuer);
    let token = key.sign(Some("a"), "JWT", &issuer.claims());
    let gone = checker.owner(&token);
    assert!(futures_util::future::poll_immediate(gone).await.is_none(), "it has to ask first");
    let all = futures_util::future::join_all((0..50).map(|_| checker.owner(&token))).await;
    assert!(all.iter().all(|owner| *owner == ada(&issuer)), "{all:?}");
    assert_eq!(issuer.n_fetches(), 1);
}

#[tokio::test]
async fn without_the_issuers_keys_nothing_is_said_about_a_token() {
    // [HTTP-9]
    let key = Key::es256();
    let issuer = Issuer::new(Vec::new()).await;
    *issuer.keys.lock().expect("keys") = None;
    let checker = checker(&issuer);
    let token = key.sign(Some("a"), "JWT", &issuer.claims());
    for _ in 0..5 {
        assert_eq!(checker.owner(&token).await, Err(Denied::Unchecked));
    }
    assert_eq!(issuer.n_fetches(), 1, "an issuer that is broken is left in peace");
}

#[tokio::test]
async fn metadata_of_another_issuer_gives_no_keys() {
    // [HTTP-9]
    let key = Key::es256();
    let issuer = Issuer::new(vec![key.public("a")]).await;
    let other = issuer.url.replace("127.0.0.1", "localhost");
    let oauth = OAuth::new(&other, RESOURCE).expect("settings");
    let mut claims = issuer.claims();
    claims["iss"] = other.clone().into();
    let token = key.sign(Some("a"), "JWT", &claims);
    assert_eq!(oauth.checker().owner(&token).await, Err(Denied::Unchecked));
    let named = oauth.keys_at(&format!("{}/keys", issuer.url)).expect("a URL");
    assert_eq!(named.checker().owner(&token).await, Ok(Scope::new(format!("{other}#ada"))));
}
