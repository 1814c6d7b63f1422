// SAFETY: the words are given back at the end, when nobody can ask any more.

/// A set of hashes that is asked without a lock: it may say yes for one that is not in it.
///
/// One bit of 32,768 for each hash: of a thousand, three in a hundred others are taken for one of
/// them.
final class KeyFilter: Sendable {
  private static let wordCount = 512
  /// Nil where the system has no address space left: then it says yes to all.
  private let words: AtomicWords?

  init() { words = AtomicWords(count: Self.wordCount) }

  deinit { if let words { unsafe words.unmap() } }

  private static func place(_ hash: UInt64) -> (word: Int, bit: UInt64) {
    (Int(truncatingIfNeeded: hash >> 6) & (wordCount - 1), 1 << (hash & 63))
  }

  /// Puts a hash into the set; nobody else changes it meanwhile.
  func insert(_ hash: UInt64) {
    guard let words else { return }
    let (word, bit) = Self.place(hash)
    words.store(word, words.load(word) | bit)
  }

  /// Empties the set; nobody else changes it meanwhile.
  func removeAll() {
    guard let words else { return }
    for word in 0..<words.count { words.store(word, 0) }
  }

  func mayContain(_ hash: UInt64) -> Bool {
    guard let words else { return true }
    let (word, bit) = Self.place(hash)
    return words.load(word) & bit != 0
  }
}
