internal import Tidemark
internal import TidemarkEngine

/// A key that is not the same in two states.
struct StateDifference {
  enum Kind {
    case added, removed, changed
  }

  var key: [UInt8]
  var kind: Kind
  /// Its sequence in each state; nil where it is absent.
  var from: UInt64?
  var to: UInt64?
  /// The fields that changed: value, labels, hash.
  var fields: [String] = []
}

/// Walks two states of a store side by side in key order.
struct StateComparison: ~Copyable {
  private let before: StoreView
  private let after: StoreView
  private var old: KeyReader
  private var new: KeyReader

  init(
    from before: StoreView, to after: StoreView, prefix: [UInt8]
  ) throws(TidemarkError) {
    let old = try before.keys(prefix: prefix)
    let new = try after.keys(prefix: prefix)
    self.before = before
    self.after = after
    self.old = KeyReader(old)
    self.new = KeyReader(new)
  }

  /// The next difference in key order; nil at the end.
  mutating func next() throws(TidemarkError) -> StateDifference? {
    while true {
      let before = try old.peek()
      let after = try new.peek()
      switch (before, after) {
      case (nil, nil): return nil
      case (let before?, nil): return removed(before)
      case (nil, let after?): return added(after)
      case (let before?, let after?):
        if before.key < after.key { return removed(before) }
        if before.key > after.key { return added(after) }
        old.advance()
        new.advance()
        if before.sequence == after.sequence { continue }
        let fields = try changes(before.key)
        if fields.isEmpty { continue }
        return StateDifference(
          key: before.key.bytes, kind: .changed, from: before.sequence, to: after.sequence,
          fields: fields)
      }
    }
  }

  private mutating func removed(_ row: KeyReader.Row) -> StateDifference {
    old.advance()
    return StateDifference(key: row.key.bytes, kind: .removed, from: row.sequence)
  }

  private mutating func added(_ row: KeyReader.Row) -> StateDifference {
    new.advance()
    return StateDifference(key: row.key.bytes, kind: .added, to: row.sequence)
  }

  /// The fields that differ between the two entries of a key. A key that was written again with
  /// the same content is none.
  private func changes(_ key: Key) throws(TidemarkError) -> [String] {
    guard let old = try before.entry(forKey: key, values: false, walks: false),
      let new = try after.entry(forKey: key, values: false, walks: false)
    else { return [] }
    var fields: [String] = []
    let isSame =
      old.valueLength == new.valueLength
      ? try before.value(forKey: key) == after.value(forKey: key) : false
    if !isSame { fields.append("value") }
    if old.labels != new.labels { fields.append("labels") }
    if old.hash != new.hash { fields.append("hash") }
    return fields
  }
}

/// The keys of a state one by one.
private struct KeyReader: ~Copyable {
  typealias Row = (key: Key, sequence: UInt64)

  private var rows: KeyRows
  private var upcoming: Row?
  private var isAhead = false

  init(_ rows: consuming KeyRows) { self.rows = rows }

  /// The next key, which stays the next one; nil at the end.
  mutating func peek() throws(TidemarkError) -> Row? {
    if !isAhead {
      upcoming = try rows.next().map { ($0, rows.sequence) }
      isAhead = true
    }
    return upcoming
  }

  mutating func advance() { isAhead = false }
}
