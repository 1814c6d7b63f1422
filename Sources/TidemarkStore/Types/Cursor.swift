/// A place in a store's history: what a follower stores to go on from there later.
///
/// The epoch tells a sequence that a crash or a restored copy lost from another one that took
/// its number since.
public struct Cursor: Sendable, Hashable {
  /// The epoch in which the sequence was given out.
  public var epoch: UInt64
  /// The last sequence that was seen.
  public var sequence: UInt64

  /// A cursor behind a sequence of an epoch.
  public init(epoch: UInt64, sequence: UInt64) {
    self.epoch = epoch
    self.sequence = sequence
  }

  /// Before the first entry of any store.
  public static let beginning = Cursor(epoch: 0, sequence: 0)
}

extension Cursor: LosslessStringConvertible {
  /// Reads what ``description`` wrote.
  public init?(_ description: String) {
    let parts = description.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].utf8.count == 16,
      !parts[0].utf8.contains(UInt8(ascii: "+")), let epoch = UInt64(parts[0], radix: 16),
      !parts[1].utf8.contains(UInt8(ascii: "+")), let sequence = UInt64(parts[1])
    else { return nil }
    self.init(epoch: epoch, sequence: sequence)
  }

  /// The cursor as text: sixteen hexadecimal digits of epoch, a hyphen, the sequence.
  public var description: String {
    let digits = String(epoch, radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits + "-\(sequence)"
  }
}

extension Cursor: Codable {
  /// Decodes the text form.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let cursor = Cursor(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a cursor")
    }
    self = cursor
  }

  /// Encodes the text form.
  public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}
