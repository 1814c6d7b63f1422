internal import TidemarkEngine

/// A position in a store's history. A follower stores it, to go on from there later.
///
/// The epoch is a random number that an opening of the store draws before its first write. A crash
/// or a restored copy may lose entries, whose sequences are then given out again: the epoch tells a
/// lost entry from the one that has its sequence now.
public struct EntryCursor: Sendable, Hashable {
  /// The epoch in which the store gave out ``sequence``.
  public var epoch: UInt64
  /// The sequence of the last entry that the follower has seen.
  public var sequence: UInt64

  /// Creates a cursor after the entry that has this sequence in this epoch.
  /// - Parameters:
  ///   - epoch: the epoch in which the store gave out the sequence.
  ///   - sequence: the sequence of the last entry that the follower has seen.
  public init(epoch: UInt64, sequence: UInt64) { (self.epoch, self.sequence) = (epoch, sequence) }

  /// The cursor before the first entry of any store: following from it delivers everything.
  public static let beginning = EntryCursor(epoch: 0, sequence: 0)
}

extension EntryCursor: LosslessStringConvertible {
  /// Reads a cursor from the text that ``description`` returned; nil for any other text.
  public init?(_ description: String) {
    let parts = description.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].utf8.count == 16,
      !parts[0].utf8.contains(UInt8(ascii: "+")), let epoch = UInt64(parts[0], radix: 16),
      !parts[1].utf8.contains(UInt8(ascii: "+")), let sequence = UInt64(parts[1])
    else { return nil }
    self.init(epoch: epoch, sequence: sequence)
  }

  /// The cursor as text to store or send: the epoch in sixteen hexadecimal digits, a hyphen, and
  /// the sequence.
  public var description: String {
    let digits = String(epoch, radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits + "-\(sequence)"
  }
}

extension EntryCursor: Codable {
  /// Decodes a cursor from the text that ``description`` returns.
  /// - Throws: `DecodingError` when the text is not a cursor.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let cursor = EntryCursor(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a cursor")
    }
    self = cursor
  }

  /// Encodes the cursor as the text that ``description`` returns.
  public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}

extension LogBounds {
  /// The cursor of a follower that has seen all entries that readers see.
  package var cursor: EntryCursor { cursor(at: visible) }

  package func cursor(at sequence: UInt64) -> EntryCursor {
    EntryCursor(epoch: epoch(of: sequence), sequence: sequence)
  }

  /// Checks that the entry that a cursor names was committed in this store and was not lost since.
  /// - Throws: `historyDiverged` when it was lost, or is another store's.
  package func check(_ cursor: EntryCursor) throws(TidemarkError) {
    // A follower that has seen nothing has seen nothing that could be lost.
    if cursor.sequence == 0 { return }
    guard let i = epochs.firstIndex(where: { $0.epoch == cursor.epoch }) else {
      throw Self.diverged("the store does not know the cursor's epoch", cursor)
    }
    // An epoch's sequences end before the first of the next: those from there on were lost.
    let last = i + 1 < epochs.count ? epochs[i + 1].firstSequence - 1 : visible
    guard cursor.sequence <= last else {
      throw Self.diverged("the cursor lies beyond the end of its epoch at \(last)", cursor)
    }
    guard cursor.sequence >= epochs[i].firstSequence else {
      throw Self.diverged("the cursor lies before the beginning of its epoch", cursor)
    }
  }

  private static func diverged(_ reason: String, _ cursor: EntryCursor) -> TidemarkError {
    TidemarkError(
      .historyDiverged,
      "\(reason): entries that were seen are gone, or it is another store's; "
        + "read the state anew and follow from there",
      sequences: cursor.sequence...cursor.sequence)
  }
}
