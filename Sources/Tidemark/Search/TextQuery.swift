internal import TidemarkEngine

/// The words that are looked for.
///
/// ```swift
/// let hits = try notes.search("text", "rice cook")                     // both, the last as a
/// beginning let hits = try notes.search("text", TextQuery("rice cooker", match: .phrase))
/// ```
public struct TextQuery: Sendable, Hashable, ExpressibleByStringLiteral {
  /// How the words belong together.
  public enum Match: Sendable, Hashable {
    /// All of them stand in the text.
    case all
    /// One of them does; those with more come first.
    case any
    /// They stand one behind the other.
    case phrase
  }

  /// The text, which is split into words and folded as the objects' are.
  public var text: String
  /// How the words belong together.
  public var match: Match
  /// Whether the last word may be the beginning of one: for search as you type.
  public var completesLast: Bool

  /// A query.
  /// - Parameters:
  ///   - text: the words.
  ///   - match: how they belong together.
  ///   - completesLast: whether the last word may be the beginning of one.
  public init(_ text: String, match: Match = .all, completesLast: Bool = true) {
    self.text = text
    self.match = match
    self.completesLast = completesLast
  }

  /// All words of a text, the last as a beginning.
  public init(stringLiteral text: String) { self.init(text) }

  /// Most words that are looked for; further ones are left out.
  static let mostWords = 64

  var words: [[UInt8]] {
    var words: [[UInt8]] = []
    WordSplitter.forEach(text) { word, _ in
      if words.count < Self.mostWords { words.append(word) }
    }
    return words
  }

  /// Whether the text ends within a word, so that this may be the beginning of a longer one.
  var endsInWord: Bool {
    guard completesLast, let last = text.unicodeScalars.last else { return false }
    var isEnd = false
    WordSplitter.forEach(text) { _, range in isEnd = range.upperBound == text.endIndex }
    return isEnd && last.value > 0x20
  }
}

/// A part of a text that shows what was found in it.
public struct TextSnippet: Sendable, Hashable {
  /// The part.
  public var text: String
  /// The words that were found, in ``text``.
  public var ranges: [Range<String.Index>]
  /// Whether the part begins with the text, and ends with it.
  public var isAtStart: Bool
  public var isAtEnd: Bool

  /// The part of a text that has the most of a query's words.
  /// - Parameters:
  ///   - text: the text.
  ///   - query: the query.
  ///   - most: how many words the part has at most.
  public init(of text: String, matching query: TextQuery, words most: Int = 16) {
    let wanted = query.words
    let completes = query.endsInWord
    var words: [(range: Range<String.Index>, isFound: Bool)] = []
    WordSplitter.forEach(text) { word, range in
      var isFound = wanted.contains(word)
      if completes, let last = wanted.last, word.starts(with: last) { isFound = true }
      words.append((range, isFound))
    }
    let size = max(1, most)
    // A window over the words, moved to where most of them were looked for.
    var best = 0
    var count = words.prefix(size).count { $0.isFound }
    var most = count
    for start in 1..<max(1, words.count - size + 1) where start + size <= words.count {
      count += (words[start + size - 1].isFound ? 1 : 0) - (words[start - 1].isFound ? 1 : 0)
      if count > most { (best, most) = (start, count) }
    }
    let window = words[best..<min(words.count, best + size)]
    let first = best == 0 ? text.startIndex : window.first?.range.lowerBound ?? text.startIndex
    let isLast = best + size >= words.count
    let last = isLast ? text.endIndex : window.last?.range.upperBound ?? text.endIndex
    isAtStart = first == text.startIndex
    isAtEnd = last == text.endIndex
    let part = String(text[first..<last])
    self.text = part
    ranges = window.filter(\.isFound).map { word in
      let lower = text[first..<word.range.lowerBound].utf8.count
      let upper = lower + text[word.range].utf8.count
      return part.utf8.index(
        part.startIndex, offsetBy: lower)..<part.utf8.index(part.startIndex, offsetBy: upper)
    }
  }
}
