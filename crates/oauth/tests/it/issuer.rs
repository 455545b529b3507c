//! An authorization server: what it publishes, and the tokens that it signs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What every token here is for.
pub(crate) const RESOURCE: &str = "https://mcp.example.org/mcp";

/// A key that signs.
pub(crate) enum Key {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(RsaKeyPair),
}

impl Key {
    pub(crate) fn es256() -> Self {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).expect("a key");
        Self::Es256(EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).expect("a key"))
    }

    pub(crate) fn ed25519() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self::EdDsa(Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key"))
    }

    /// A key for tests alone: the library makes none of this kind.
    pub(crate) fn rsa() -> Self {
        let text: String = include_str!("rsa-key-for-tests.txt").split_whitespace().collect();
        let document = STANDARD.decode(text).expect("base64");
        Self::Rs256(RsaKeyPair::from_der(&document).expect("a key"))
    }

    const fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::EdDsa(_) => "EdDSA",
            Self::Rs256(_) => "RS256",
        }
    }

    /// Returns the public half, as an issuer publishes it.
    pub(crate) fn public(&self, kid: &str) -> Value {
        let mut jwk = match self {
            Self::Es256(key) => {
                let point = key.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..])})
            }
            Self::EdDsa(key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": text(key.public_key().as_ref())})
            }
            Self::Rs256(key) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({"kty": "RSA", "n": text(public.n), "e": text(public.e)})
            }
        };
        jwk["kid"] = kid.into();
        jwk["use"] = "sig".into();
        jwk
    }

    /// Signs a token.
    pub(crate) fn sign(&self, kid: Option<&str>, typ: &str, claims: &Value) -> String {
        let mut header = json!({"alg": self.algorithm(), "typ": typ});
        if let Some(kid) = kid {
            header["kid"] = kid.into();
        }
        self.sign_as(&header, claims)
    }

    /// Signs a token with this header.
    pub(crate) fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", text(header.to_string()), text(claims.to_string()));
        let random = SystemRandom::new();
        let signature = match self {
            Self::Es256(key) => {
                key.sign(&random, message.as_bytes()).expect("signed").as_ref().to_vec()
            }
            Self::EdDsa(key) => key.sign(message.as_bytes()).as_ref().to_vec(),
            Self::Rs256(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature)
                    .expect("signed");
                signature
            }
        };
        format!("{message}.{}", text(signature))
    }
}

/// Writes bytes as tokens do.
pub(crate) fn text(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns so many seconds from now, as tokens count.
pub(crate) fn from_now(seconds: i64) -> i64 {
    i64::try_from(jsonwebtoken::get_current_timestamp()).expect("in range") + seconds
}

/// A server that publishes its metadata and keys.
pub(crate) struct Issuer {
    pub(crate) url: String,
    /// The keys that it publishes; `None` while it is broken.
    pub(crate) keys: Arc<Mutex<Option<Vec<Value>>>>,
    /// How often the keys were fetched.
    pub(crate) n_fetches: Arc<AtomicU32>,
    _serving: JoinSet<()>,
}

impl Issuer {
    pub(crate) async fn new(keys: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (keys, n_fetches) = (Arc::new(Mutex::new(Some(keys))), Arc::<AtomicU32>::default());
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, url.clone(), Arc::clone(&keys), Arc::clone(&n_fetches)));
        Self { url, keys, n_fetches, _serving: serving }
    }

    pub(crate) fn n_fetches(&self) -> u32 {
        self.n_fetches.load(Ordering::SeqCst)
    }

    /// Returns what a good token says.
    pub(crate) fn claims(&self) -> Value {
        json!({"iss": self.url, "aud": RESOURCE, "sub": "ada", "exp": from_now(600), "scope": "tasks other"})
    }
}

async fn serve(
    listener: TcpListener,
    url: String,
    keys: Arc<Mutex<Option<Vec<Value>>>>,
    n_fetches: Arc<AtomicU32>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let mut stream = BufReader::new(stream);
        let (mut first, mut line) = (String::new(), String::new());
        stream.read_line(&mut first).await.expect("a request");
        while stream.read_line(&mut line).await.expect("a header") > 2 {
            line.clear();
        }
        let body = if first.starts_with("GET /.well-known/oauth-authorization-server ") {
            Some(json!({"issuer": url, "jwks_uri": format!("{url}/keys")}))
        } else if first.starts_with("GET /keys ") {
            n_fetches.fetch_add(1, Ordering::SeqCst);
            keys.lock().expect("keys").as_ref().map(|keys| json!({"keys": keys}))
        } else {
            None
        };
        let status = if body.is_some() { "200 OK" } else { "503 Service Unavailable" };
        let body = body.unwrap_or_default().to_string();
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        // A client that has gone away is no fault of the server.
        let _ = stream.get_mut().write_all(answer.as_bytes()).await;
    }
}
