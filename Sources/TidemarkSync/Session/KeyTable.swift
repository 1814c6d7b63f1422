internal import TidemarkEngine

/// The keys of a batch, each with the sequence of its last change in it.
///
/// It looks them up by a hash that is much faster than that of an array, and like that seeded, so
/// that whoever chooses the keys cannot make them collide.
struct KeyTable {
  private struct HashedKey: Hashable {
    let keyHash: UInt64
    let key: [UInt8]

    func hash(into hasher: inout Hasher) { hasher.combine(keyHash) }
  }

  private let seed: UInt64
  private var rows: [HashedKey: (sequence: UInt64, isSent: Bool)] = [:]

  /// - Parameter seed: a number that those who choose the keys do not know.
  init(seed: UInt64) { self.seed = seed }

  private func hashed(_ key: [UInt8]) -> HashedKey {
    HashedKey(keyHash: KeyHash.hash(key.rawSpan, seed: seed), key: key)
  }

  /// The sequence of a key's last change.
  subscript(key: [UInt8]) -> UInt64? { rows[hashed(key)]?.sequence }

  /// Whether a change of the key is sent.
  func sends(_ key: [UInt8]) -> Bool { rows[hashed(key)]?.isSent ?? false }

  /// Takes note of a key's change.
  /// - Parameter isSent: whether the change goes; it stays so for the key.
  mutating func note(_ key: [UInt8], _ sequence: UInt64, isSent: Bool) {
    let key = hashed(key)
    let former = rows.updateValue((sequence, isSent), forKey: key)
    if !isSent, former?.isSent ?? false { rows[key] = (sequence, true) }
  }

  mutating func removeAll() { rows = [:] }
}
