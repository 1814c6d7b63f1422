// SAFETY: the words are unmapped in `deinit`, when nobody has a reference to ask through.

/// A set of hashes that is asked without a lock, as a Bloom filter with one bit for each hash: it
/// may say yes for a hash that is not in it, and never no for one that is.
///
/// It has 32,768 bits: with a thousand hashes in it, 3 % of all others get a wrong yes.
final class KeyFilter: Sendable {
  private static let wordCount = 512
  /// Nil where the system has no address space left: then the set says yes to every hash.
  private let words: AtomicWords?

  init() { words = AtomicWords(count: Self.wordCount) }

  deinit { if let words { unsafe words.unmap() } }

  private static func position(_ hash: UInt64) -> (word: Int, bit: UInt64) {
    (Int(truncatingIfNeeded: hash >> 6) & (wordCount - 1), 1 << (hash & 63))
  }

  /// Puts a hash into the set. The caller holds a lock against other changes: a bit that another
  /// thread sets between the load and the store would be lost.
  func insert(_ hash: UInt64) {
    guard let words else { return }
    let (word, bit) = Self.position(hash)
    words.store(word, words.load(word) | bit)
  }

  /// Empties the set; under the same lock as ``insert(_:)``.
  func removeAll() {
    words?.clear(0, Self.wordCount)
  }

  func mayContain(_ hash: UInt64) -> Bool {
    guard let words else { return true }
    let (word, bit) = Self.position(hash)
    return words.load(word) & bit != 0
  }
}
