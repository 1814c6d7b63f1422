/// The keys that a store is encrypted with.
///
/// A store asks for a key of 32 random bytes, not for a password. Every file of the store is
/// encrypted with a key of its own. The file's header holds that file key, encrypted with the key
/// that is given here, and names the latter by its ``KeyID``, which tells nothing about its bytes.
///
/// Elsewhere than on Apple's systems it needs a build with the package's trait `Encryption`; see
/// ``isAvailable``.
public struct Encryption: Sendable {
  /// The length of an encryption key in bytes: 32.
  public static let keyBytes = 32

  /// The id of an encryption key: the first 16 bytes of a SHA-256 over a fixed text and the key.
  public struct KeyID: Sendable, Hashable, CustomStringConvertible {
    static let byteCount = 16

    /// The 16 bytes of the id, to store elsewhere.
    public let bytes: [UInt8]

    /// Creates an id from bytes that were stored elsewhere.
    /// - Returns: nil unless there are 16 bytes, not all of them zero.
    public init?(_ bytes: [UInt8]) {
      guard bytes.count == 16, bytes.contains(where: { $0 != 0 }) else { return nil }
      self.bytes = bytes
    }

    /// The id in 32 hexadecimal digits.
    public var description: String { String(decoding: bytes.hexDigits, as: UTF8.self) }
  }

  /// Whether this build can encrypt and decrypt. If not, the package's trait `Encryption` is
  /// missing.
  public static var isAvailable: Bool { BlockSealer.isAvailable }

  /// Looks up a key, see ``key(_:)``.
  package let find: @Sendable (KeyID?) throws -> [UInt8]?

  /// Makes an encryption whose keys are looked up when a store is opened, for example in the
  /// system's keychain.
  ///
  /// A program with a single key returns it whatever the id. A program that changes its key
  /// returns the new key for nil, and old keys by their ids until ``Store`` has rewritten
  /// everything; see the article on encryption.
  /// - Parameter find: gets the id of the key that a file was written with, or nil for the key
  ///   that new files are to be written with, and returns the key's 32 bytes; nil when there is
  ///   no such key. It is called on the thread that opens the store.
  public static func key(
    _ find: @escaping @Sendable (_ id: KeyID?) throws -> [UInt8]?
  ) -> Encryption { Encryption(find: find) }

  /// Computes the id of a key, by which a store asks for the key later.
  /// - Returns: nil unless the key has 32 bytes, and in a build without encryption.
  public static func id(ofKey key: [UInt8]) -> KeyID? {
    guard key.count == keyBytes else { return nil }
    return KeyID(BlockSealer.fingerprint(of: key))
  }
}
