public import TidemarkEngine

extension ModelStore {
  /// A key with different contents at two sequences; see ``differences(from:to:)``.
  public struct Difference: Sendable, Hashable {
    /// The key whose contents differ.
    public var key: [UInt8]
    /// The row at the first sequence; nil if the key was absent.
    public var before: ModelRow?
    /// The row at the second sequence; nil if the key was absent.
    public var after: ModelRow?

    /// Creates a difference, to compare a store's answer with the model's.
    /// - Parameters:
    ///   - key: the key.
    ///   - before: the row at the first sequence; nil if absent.
    ///   - after: the row at the second sequence; nil if absent.
    public init(key: [UInt8], before: ModelRow?, after: ModelRow?) {
      self.key = key
      self.before = before
      self.after = after
    }
  }

  /// Returns all entries of a key, the oldest first.
  public func history(ofKey key: [UInt8]) -> [ModelEntry] {
    entries.filter { $0.key == key }
  }

  /// The keys that have or had a cached value. A store keeps cached values only until a newer value
  /// replaces them.
  public var cachedKeys: Set<[UInt8]> {
    Set(entries.lazy.filter { $0.operation == .cache }.map(\.key))
  }

  /// Returns the sequences of entries that a store need not keep: cached values, their touches and
  /// their evictions.
  public func passingSequences() -> Set<UInt64> {
    var passing: Set<UInt64> = []
    var rows: [[UInt8]: ModelRow] = [:]
    for entry in entries {
      let isCached =
        switch entry.operation {
        case .cache, .evict: true
        case .touch: rows[entry.key]?.isCached ?? false
        case .put, .delete: false
        }
      if isCached { passing.insert(entry.sequence) }
      Self.apply(entry, to: &rows)
    }
    return passing
  }

  /// Returns all entries after a sequence, the oldest first.
  public func entries(since sequence: UInt64) -> [ModelEntry] {
    entries.filter { $0.sequence > sequence }
  }

  /// Returns the keys whose value, labels or hash differ between two sequences, in byte order. A
  /// key that was written again with the same content is not among them.
  public func differences(from first: UInt64, to second: UInt64) -> [Difference] {
    let before = state(at: first)
    let after = state(at: second)
    let keys = Set(before.keys).union(after.keys)
    return keys.sorted { $0.lexicographicallyPrecedes($1) }.compactMap { key in
      let old = before[key]
      let new = after[key]
      if let old, let new, old.holdsTheSame(as: new) { return nil }
      return Difference(key: key, before: old, after: new)
    }
  }

  /// Returns the writes that bring back the state at a sequence, in the byte order of their keys.
  public func undo(since sequence: UInt64) -> [ModelEntry] {
    differences(from: sequence, to: lastSequence).map { difference in
      guard let row = difference.before else { return ModelEntry(.delete, difference.key) }
      return ModelEntry(.put, row.key, value: row.value, labels: row.labels, hash: row.hash)
    }
  }

  /// Returns the sequence for a date: the last one up to which no entry has a later time.
  public func sequence(at time: Timestamp) -> UInt64 {
    var result: UInt64 = 0
    for entry in entries {
      if entry.time > time { return result }
      result = entry.sequence
    }
    return lastSequence
  }

  // MARK: After a crash

  /// Returns the shortest sequence of whole batches whose state has exactly these rows.
  ///
  /// After a crash a store must have such a prefix, and it must include every acknowledged batch.
  /// - Parameters:
  ///   - rows: the rows of the store, in any order; sequences are not compared.
  ///   - sequence: prefixes that end before this sequence do not count.
  /// - Returns: the last sequence of the prefix; nil if no prefix has these rows.
  public func prefix(showing rows: [ModelRow], from sequence: UInt64 = 0) -> UInt64? {
    var wanted: [[UInt8]: ModelRow] = [:]
    for row in rows where wanted.updateValue(row, forKey: row.key) != nil { return nil }
    var state: [[UInt8]: ModelRow] = [:]
    var next = 0
    for end in batchEnds {
      while next < entries.count, entries[next].sequence <= end {
        Self.apply(entries[next], to: &state)
        next += 1
      }
      if end >= sequence, Self.holdTheSame(state, wanted) { return end }
    }
    return nil
  }

  private static func holdTheSame(
    _ a: [[UInt8]: ModelRow], _ b: [[UInt8]: ModelRow]
  ) -> Bool {
    guard a.count == b.count else { return false }
    return a.allSatisfy { key, row in b[key].map(row.holdsTheSame) ?? false }
  }

  /// Compares the rows of a store with those of the model.
  /// - Parameters:
  ///   - rows: the rows that the store returned.
  ///   - query: the query that the store answered.
  ///   - sequence: the sequence as of which it answered; nil for the present.
  ///   - keys: keys that are not compared.
  /// - Returns: the first difference, in words, with keys in a readable form; nil if there is none.
  public func mismatch(
    of rows: [ModelRow], _ query: ModelQuery = ModelQuery(), at sequence: UInt64? = nil,
    except keys: Set<[UInt8]> = []
  ) -> String? {
    var right = self.rows(query, at: sequence)
    var rows = rows
    if !keys.isEmpty {
      right.removeAll { keys.contains($0.key) }
      rows.removeAll { keys.contains($0.key) }
    }
    for (index, pair) in zip(right, rows).enumerated() where !pair.0.holdsTheSame(as: pair.1) {
      return "row \(index) is \(Self.describe(pair.1)), should be \(Self.describe(pair.0))"
    }
    if rows.count < right.count { return "lacks \(Self.describe(right[rows.count]))" }
    if rows.count > right.count { return "has \(Self.describe(rows[right.count])) too many" }
    return nil
  }

  private static func describe(_ row: ModelRow) -> String {
    let labels = row.labels.sorted { $0.lexicographicallyPrecedes($1) }.map(readable)
    return "\(readable(row.key)) = \(readable(row.value)) [\(labels.joined(separator: ", "))]"
  }

  /// Bytes for a person: printable ASCII as it is, the rest in hex, long ones shortened.
  static func readable(_ bytes: [UInt8]) -> String {
    let shown = bytes.prefix(40)
    var text = ""
    for byte in shown {
      if byte > 0x20, byte < 0x7f, byte != 0x5c {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return bytes.count > 40 ? text + "… (\(bytes.count) bytes)" : text
  }
}
