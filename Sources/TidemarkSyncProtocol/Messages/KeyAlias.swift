internal import TidemarkEngine

/// An alias of a key: the id that a back end gives to a record created from the key.
///
/// The key never changes. The alias comes with the answer to the create and is removed with the
/// record. It has 1 to 1,024 bytes and is compared byte by byte.
///
/// ```swift
/// case 201: return .appliedAs(KeyAlias(response.id))
/// ```
public struct KeyAlias: Sendable, Hashable {
  /// The alias as the back end gave it: 1 to 1,024 bytes.
  public var bytes: [UInt8]

  /// Creates an alias with these bytes.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Creates an alias from text, as its UTF-8 bytes.
  public init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

  /// Creates an alias from a number, as its decimal digits: for back ends with numeric ids.
  public init(_ number: some BinaryInteger) { self.init(String(number)) }

  /// The alias as text; bytes that are not UTF-8 show as U+FFFD.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The rejection code of a change whose alias in the answer is not valid.
  package static let refusal = "alias"

  /// What is wrong with the alias; nil if it is valid.
  package var fault: String? {
    if bytes.isEmpty { return "the alias is empty" }
    guard bytes.count > Limits.aliasBytes else { return nil }
    return "the alias has \(bytes.count) bytes; \(Limits.aliasBytes) at most"
  }
}

extension KeyAlias: ExpressibleByStringLiteral {
  /// Creates an alias from a string literal, as its UTF-8 bytes.
  public init(stringLiteral text: String) { self.init(text) }
}

extension KeyAlias: CustomStringConvertible {
  /// The alias as text, as in ``text``.
  public var description: String { text }
}
