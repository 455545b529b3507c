//! The signatures of tokens, checked by `ring`, which TLS has in the tree already.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature as scheme;
use signature::Verifier;

/// The algorithms that are taken: those whose keys the issuer alone has.
pub(crate) const TAKEN: &[Algorithm] = &[
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has tokens of this process checked by `ring`, unless the program around it chose something else.
pub(crate) fn install() {
    let _ = PROVIDER.install_default();
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    Ok(Box::new(Ring { algorithm: *algorithm, key: key.clone() }))
}

/// A key, and how it is used.
struct Ring {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for Ring {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Ring {
    fn verify(&self, message: &[u8], shown: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        if self.algorithm.family() != self.key.family() {
            return Err(signature::Error::new());
        }
        let checked = match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                let key = scheme::RsaPublicKeyComponents { n, e };
                rsa(self.algorithm).map(|how| key.verify(how, message, shown))
            }
            DecodingKeyKind::SecretOrDer(key) => curve(self.algorithm)
                .map(|how| scheme::UnparsedPublicKey::new(how, key).verify(message, shown)),
        };
        matches!(checked, Some(Ok(()))).then_some(()).ok_or_else(signature::Error::new)
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static scheme::RsaParameters> {
    let known: [(Algorithm, &'static scheme::RsaParameters); 6] = [
        (Algorithm::RS256, &scheme::RSA_PKCS1_2048_8192_SHA256),
        (Algorithm::RS384, &scheme::RSA_PKCS1_2048_8192_SHA384),
        (Algorithm::RS512, &scheme::RSA_PKCS1_2048_8192_SHA512),
        (Algorithm::PS256, &scheme::RSA_PSS_2048_8192_SHA256),
        (Algorithm::PS384, &scheme::RSA_PSS_2048_8192_SHA384),
        (Algorithm::PS512, &scheme::RSA_PSS_2048_8192_SHA512),
    ];
    known.into_iter().find(|(one, _)| *one == algorithm).map(|(_, how)| how)
}

fn curve(algorithm: Algorithm) -> Option<&'static dyn scheme::VerificationAlgorithm> {
    let known: [(Algorithm, &'static dyn scheme::VerificationAlgorithm); 3] = [
        (Algorithm::ES256, &scheme::ECDSA_P256_SHA256_FIXED),
        (Algorithm::ES384, &scheme::ECDSA_P384_SHA384_FIXED),
        (Algorithm::EdDSA, &scheme::ED25519),
    ];
    known.into_iter().find(|(one, _)| *one == algorithm).map(|(_, how)| how)
}
