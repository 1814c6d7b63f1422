#if JWT
  import Crypto

  #if canImport(Darwin)
    import Foundation
  #else
    import FoundationEssentials
  #endif

  /// Signs web tokens, whatever they say.
  struct TokenSigner: Sendable {
    let algorithm: String
    let sign: @Sendable ([UInt8]) -> [UInt8]

    static func hs256(_ secret: [UInt8]) -> TokenSigner {
      TokenSigner(algorithm: "HS256") {
        Array(HMAC<SHA256>.authenticationCode(for: $0, using: SymmetricKey(data: secret)))
      }
    }

    static func es256(_ key: P256.Signing.PrivateKey) -> TokenSigner {
      TokenSigner(algorithm: "ES256") { text in
        (try? key.signature(for: text)).map { Array($0.rawRepresentation) } ?? []
      }
    }

    /// A token with a signature that holds.
    /// - Parameter header: nil for one that names the algorithm alone.
    func token(_ payload: String, header: String? = nil) -> String {
      token(Array(payload.utf8), header: Array((header ?? "{\"alg\":\"\(algorithm)\"}").utf8))
    }

    func token(_ payload: [UInt8], header: [UInt8]) -> String {
      let text = Self.base64URL(header) + "." + Self.base64URL(payload)
      return text + "." + Self.base64URL(sign(Array(text.utf8)))
    }

    static func base64URL(_ bytes: [UInt8]) -> String {
      String(
        Data(bytes).base64EncodedString().compactMap { character in
          switch character {
          case "+": "-"
          case "/": "_"
          case "=": nil
          default: character
          }
        })
    }
  }
#endif
