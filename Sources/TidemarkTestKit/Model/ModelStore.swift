public import TidemarkEngine

/// The answers that a store should give, worked out in the most obvious way.
///
/// The model is the list of all entries; every past state is found by going through the list
/// from its beginning, and only the present one is kept. It shares no code with the engine and is
/// slow on purpose: it must be right.
///
/// ```swift
/// var model = ModelStore()
/// model.put(key, value, labels: [Array("inbox".utf8)])
/// model.write([ModelEntry(.put, a, value: one), ModelEntry(.delete, b)])   // one batch
/// model.row(forKey: key)                  // now
/// model.row(forKey: key, at: 1)           // then
/// model.prefix(showing: rows, from: 2)    // which whole number of batches gives these rows?
/// ```
public struct ModelStore: Sendable, Hashable {
  /// The entries that the model keeps, in the order of their sequences.
  public private(set) var entries: [ModelEntry] = []
  /// The sequence of the last entry; 0 when there was none.
  public private(set) var lastSequence: UInt64 = 0
  /// The last sequence of every batch, in order, beginning with 0 for the empty store.
  public private(set) var batchEnds: [UInt64] = [0]
  /// The oldest sequence for which a view can be opened; 0 while all history is kept.
  public private(set) var historyFrom: UInt64 = 0
  /// The state after the last entry: what going through all entries gives.
  private var present: [[UInt8]: ModelRow] = [:]

  /// Creates an empty model store.
  public init() {}

  // MARK: Writing

  /// Writes entries as one batch, each at the next sequence.
  ///
  /// A delete or touch of a key that is absent at its turn makes no entry.
  /// - Parameters:
  ///   - batch: the entries; their own sequences are not looked at.
  ///   - keepingVainDeletes: whether a delete of an absent key makes an entry all the same, as it
  ///     does in an import.
  /// - Returns: for each entry its sequence, or nil where it made none.
  @discardableResult
  public mutating func write(
    _ batch: [ModelEntry], keepingVainDeletes: Bool = false
  ) -> [UInt64?] {
    var sequences: [UInt64?] = []
    for var entry in batch {
      let isPresent = present[entry.key] != nil
      let isVain =
        switch entry.operation {
        case .put, .cache: false
        case .evict: present[entry.key]?.isCached != true
        case .delete: !isPresent && !keepingVainDeletes
        case .touch: !isPresent
        }
      if isVain {
        sequences.append(nil)
        continue
      }
      lastSequence += 1
      entry.sequence = lastSequence
      Self.apply(entry, to: &present)
      entries.append(entry)
      sequences.append(lastSequence)
    }
    if lastSequence != batchEnds.last { batchEnds.append(lastSequence) }
    return sequences
  }

  /// Puts a value under a key, as a batch of its own.
  /// - Returns: the sequence of the new entry.
  @discardableResult
  public mutating func put(
    _ key: [UInt8], _ value: [UInt8], labels: Set<[UInt8]> = [], hash: [UInt8] = [],
    time: Timestamp = Timestamp(seconds: 0)
  ) -> UInt64 {
    write([ModelEntry(.put, key, value: value, labels: labels, hash: hash, time: time)])
    return lastSequence
  }

  /// Deletes a key, as a batch of its own.
  /// - Returns: the sequence of the new entry; nil if the key was absent.
  @discardableResult
  public mutating func delete(
    _ key: [UInt8], time: Timestamp = Timestamp(seconds: 0)
  ) -> UInt64? {
    write([ModelEntry(.delete, key, time: time)])[0]
  }

  /// Confirms that a key's value is still valid, as a batch of its own.
  /// - Returns: the sequence of the new entry; nil if the key was absent.
  @discardableResult
  public mutating func touch(
    _ key: [UInt8], time: Timestamp = Timestamp(seconds: 0)
  ) -> UInt64? {
    write([ModelEntry(.touch, key, time: time)])[0]
  }

  /// Advances to a sequence without entries, since the store gave the sequences between to records
  /// of its own.
  public mutating func skip(to sequence: UInt64) {
    guard sequence > lastSequence else { return }
    lastSequence = sequence
    batchEnds.append(sequence)
  }

  /// Removes everything after a sequence, as a crash does with unsynced entries.
  public mutating func truncate(after sequence: UInt64) {
    entries.removeAll { $0.sequence > sequence }
    batchEnds.removeAll { $0 > sequence }
    lastSequence = min(lastSequence, sequence)
    if batchEnds.last != lastSequence { batchEnds.append(lastSequence) }
    present = state(at: lastSequence)
  }

  /// Drops all history, as a compaction without history does. Each existing key keeps its last put
  /// and the touches after it; deleted keys keep nothing.
  public mutating func dropHistory() {
    let now = state()
    entries.removeAll { entry in
      guard let row = now[entry.key] else { return true }
      return entry.sequence < row.valueSequence
    }
    historyFrom = lastSequence
  }

  // MARK: States

  /// Returns the rows of all existing keys.
  /// - Parameter sequence: the last entry that counts; nil for all entries.
  public func state(at sequence: UInt64? = nil) -> [[UInt8]: ModelRow] {
    guard let sequence else { return present }
    var rows: [[UInt8]: ModelRow] = [:]
    for entry in entries where entry.sequence <= sequence {
      Self.apply(entry, to: &rows)
    }
    return rows
  }

  static func apply(_ entry: ModelEntry, to rows: inout [[UInt8]: ModelRow]) {
    switch entry.operation {
    case .put, .cache:
      rows[entry.key] = ModelRow(
        key: entry.key, value: entry.value, labels: entry.labels, hash: entry.hash,
        valueSequence: entry.sequence, sequence: entry.sequence,
        isCached: entry.operation == .cache)
    case .delete, .evict: rows[entry.key] = nil
    case .touch: rows[entry.key]?.sequence = entry.sequence
    }
  }

  /// Whether the model still knows the state at a sequence.
  public func canView(at sequence: UInt64) -> Bool {
    sequence >= historyFrom && sequence <= lastSequence
  }

  /// Returns the row of a key, now or at an earlier sequence; nil if the key was absent.
  public func row(forKey key: [UInt8], at sequence: UInt64? = nil) -> ModelRow? {
    state(at: sequence)[key]
  }

  /// Returns how many keys existed, now or at an earlier sequence.
  public func count(at sequence: UInt64? = nil) -> Int { state(at: sequence).count }

  /// Returns the rows of a query, now or at an earlier sequence.
  public func rows(_ query: ModelQuery = ModelQuery(), at sequence: UInt64? = nil) -> [ModelRow] {
    var rows = state(at: sequence).values.filter(query.matches)
    rows.sort { a, b in
      switch query.order {
      case .key: a.key.lexicographicallyPrecedes(b.key)
      case .sequence: a.sequence < b.sequence
      }
    }
    if query.isReversed { rows.reverse() }
    return Array(rows.prefix(query.limit ?? .max))
  }

  /// Returns all labels in byte order, with how many keys carry each.
  public func labels(at sequence: UInt64? = nil) -> [(label: [UInt8], keys: Int)] {
    var counts: [[UInt8]: Int] = [:]
    for row in state(at: sequence).values {
      for label in row.labels { counts[label, default: 0] += 1 }
    }
    return counts.sorted { $0.key.lexicographicallyPrecedes($1.key) }
      .map { (label: $0.key, keys: $0.value) }
  }
}
