// What the sources use of Apple's framework CryptoKit, for Tools/check-apple. Signatures are those
// of developer.apple.com/documentation/cryptokit (SymmetricKey, AES.GCM, SHA256); nothing works.
public import Foundation

public enum CryptoKitError: Error {
  case incorrectKeySize
  case incorrectParameterSize
  case authenticationFailure
}

public struct SymmetricKey: Sendable {
  public init(data: some ContiguousBytes) {}
}

public enum AES: Sendable {
  public enum GCM: Sendable {
    public struct Nonce: Sendable {
      public init() {}
      public init(data: some DataProtocol) throws {}
    }

    public struct SealedBox: Sendable {
      public var ciphertext: Data { Data() }
      public var tag: Data { Data() }

      public init(
        nonce: Nonce, ciphertext: some DataProtocol, tag: some DataProtocol
      ) throws {}
    }

    public static func seal(
      _ message: some DataProtocol, using key: SymmetricKey, nonce: Nonce? = nil,
      authenticating authenticatedData: some DataProtocol
    ) throws -> SealedBox {
      throw CryptoKitError.incorrectKeySize
    }

    public static func open(
      _ sealedBox: SealedBox, using key: SymmetricKey,
      authenticating authenticatedData: some DataProtocol
    ) throws -> Data {
      throw CryptoKitError.authenticationFailure
    }
  }
}

public struct SHA256Digest: Sendable {
  public static var byteCount: Int { 32 }
}

public struct SHA256: Sendable {
  public init() {}
  public mutating func update(bufferPointer: UnsafeRawBufferPointer) {}
  public func finalize() -> SHA256Digest { SHA256Digest() }
  public static func hash(data: some DataProtocol) -> SHA256Digest { SHA256Digest() }
}
