internal import TidemarkEngine

/// The keys of a batch, each with the sequence of its last change in it.
///
/// A table with open addressing over a hash that is much faster than that of a dictionary, and
/// like that seeded, so that whoever chooses the keys cannot make them collide.
struct KeyTable {
  private struct Row {
    var key: [UInt8]
    var hash: UInt64
    var sequence: UInt64
    var isSent: Bool
  }

  private let seed: UInt64
  private var rows: [Row] = []
  /// Numbers of rows, counted from 1, below the upper half of their hash; 0 is free. A power of two
  /// of them, of which at most half are taken.
  private var places: [UInt64] = []

  /// - Parameter seed: a number that those who choose the keys do not know.
  init(seed: UInt64) { self.seed = seed }

  /// The sequence of a key's last change.
  subscript(key: [UInt8]) -> UInt64? {
    guard let row = row(key, KeyHash.hash(key.rawSpan, seed: seed)) else { return nil }
    return rows[row].sequence
  }

  /// Whether a change of the key is sent.
  func sends(_ key: [UInt8]) -> Bool {
    guard let row = row(key, KeyHash.hash(key.rawSpan, seed: seed)) else { return false }
    return rows[row].isSent
  }

  /// Takes note of a key's change.
  /// - Parameter isSent: whether the change goes; it stays so for the key.
  mutating func note(_ key: [UInt8], _ sequence: UInt64, isSent: Bool) {
    let hash = KeyHash.hash(key.rawSpan, seed: seed)
    if let row = row(key, hash) {
      rows[row].sequence = sequence
      if isSent { rows[row].isSent = true }
      return
    }
    rows.append(Row(key: key, hash: hash, sequence: sequence, isSent: isSent))
    if rows.count * 2 > places.count { grow() } else { place(rows.count) }
  }

  mutating func removeAll() {
    rows = []
    places = []
  }

  private static let numbers: UInt64 = 0xffff_ffff

  private func row(_ key: [UInt8], _ hash: UInt64) -> Int? {
    guard !places.isEmpty else { return nil }
    let mask = places.count - 1
    var place = Int(truncatingIfNeeded: hash) & mask
    while places[place] != 0 {
      if places[place] >> 32 == hash >> 32 {
        let row = Int(places[place] & Self.numbers) - 1
        let found = rows[row].key
        if found.rawSpan.isEqual(to: key.rawSpan) { return row }
      }
      place = (place + 1) & mask
    }
    return nil
  }

  private mutating func grow() {
    places = Array(repeating: 0, count: max(64, places.count * 2))
    for number in 1...rows.count { place(number) }
  }

  private mutating func place(_ number: Int) {
    let mask = places.count - 1
    var place = Int(truncatingIfNeeded: rows[number - 1].hash) & mask
    while places[place] != 0 { place = (place + 1) & mask }
    places[place] = rows[number - 1].hash & ~Self.numbers | UInt64(number)
  }
}
