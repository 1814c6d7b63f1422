internal import TidemarkEngine

/// The words of a full-text search, and how texts must contain them.
///
/// ```swift
/// // Both, the last as a beginning.
/// let hits = try notes.search("text", "rice cook")
/// let exact = try notes.search("text", TextQuery("rice cooker", match: .phrase))
/// ```
public struct TextQuery: Sendable, Hashable, ExpressibleByStringLiteral {
  /// The way in which a text must contain the words of a query.
  public enum Match: Sendable, Hashable {
    /// The text contains all words. Words that are written together in the query stand together in
    /// the text.
    case all
    /// The text contains at least one of the words; texts with more of them come first.
    case any
    /// The text contains the words one after the other, in the order of the query.
    case phrase
  }

  /// The words to search for. The text is split into words and folded as the objects' texts are.
  public var text: String
  /// The way in which a text must contain the words; all of them by default.
  public var match: Match
  /// Whether the last word may be only the beginning of a word, for search as you type; true by
  /// default.
  public var completesLast: Bool

  /// Creates a query for the words of a text.
  /// - Parameters:
  ///   - text: the words.
  ///   - match: how they belong together.
  ///   - completesLast: whether the last word may be the beginning of one.
  public init(_ text: String, match: Match = .all, completesLast: Bool = true) {
    self.text = text
    self.match = match
    self.completesLast = completesLast
  }

  /// Creates a query for all words of a string literal; the last may be the beginning of a word.
  public init(stringLiteral text: String) { self.init(text) }

  /// Most words that are looked for; further ones are left out.
  static let mostWords = 64

  /// The words in parts, each of which has to stand in a text one word behind the other: what is
  /// written together, as words of scripts without spaces are, and all of a phrase.
  /// - Returns: also whether the last word may be the beginning of one.
  func split() -> (parts: [[[UInt8]]], completes: Bool) {
    var parts: [[[UInt8]]] = []
    var last: WordSplitter.Word?
    var count = 0
    WordSplitter.forEach(text) { word in
      guard count < Self.mostWords else { return }
      count += 1
      if let last, match == .phrase || last.range.upperBound == word.range.lowerBound {
        parts[parts.count - 1].append(word.bytes)
      } else {
        parts.append([word.bytes])
      }
      last = word
    }
    guard completesLast, let last, last.isOpen, last.range.upperBound == text.endIndex else {
      return (parts, false)
    }
    // A long word is looked for by its hash, which has no beginning.
    return (parts, last.bytes.count <= WordSplitter.wordBytes)
  }
}

/// A short part of a text that shows the words which a search has found in it.
public struct TextSnippet: Sendable, Hashable {
  /// The part of the text to show.
  public var text: String
  /// The ranges in ``text`` of the words that the search has found, to highlight them.
  public var ranges: [Range<String.Index>]
  /// Whether the part begins where the whole text begins; if not, show an ellipsis before it.
  public var isAtStart: Bool
  /// Whether the part ends where the whole text ends; if not, show an ellipsis after it.
  public var isAtEnd: Bool

  /// Cuts the part of a text that has the most of a query's words.
  /// - Parameters:
  ///   - text: the text.
  ///   - query: the query.
  ///   - most: how many words the part has at most.
  public init(of text: String, matching query: TextQuery, words most: Int = 16) {
    var words: [(bytes: [UInt8], range: Range<String.Index>, isFound: Bool)] = []
    WordSplitter.forEach(text) { words.append(($0.bytes, $0.range, false)) }
    let (parts, completes) = query.split()
    for (number, part) in parts.enumerated() {
      let prefix = completes && number == parts.count - 1 ? part.count - 1 : nil
      for start in words.indices where start + part.count <= words.count {
        let isThere = part.indices.allSatisfy { place in
          let word = words[start + place].bytes
          return place == prefix ? word.starts(with: part[place]) : word == part[place]
        }
        guard isThere else { continue }
        for place in start..<start + part.count { words[place].isFound = true }
      }
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
