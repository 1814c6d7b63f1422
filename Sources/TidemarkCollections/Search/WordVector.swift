internal import TidemarkEngine

/// The words of a document, with how often and where they stand in it.
///
/// ```
/// varint  words in all
/// varint  different words; of each, in the order of their bytes:
/// varint  length, bytes
/// varint  weight: how often it stands there, times the weight of the field
/// varint  places, the first, then the distances
/// ```
struct WordVector: Sendable {
  struct Word: Sendable {
    var word: [UInt8]
    var weight: Int
    var places: [Int]
  }

  /// Words of different fields are so far apart, so that no phrase crosses fields.
  private static let gap = 1_000

  /// How many words there are in all.
  var length = 0
  /// In the order of their bytes.
  var words: [Word] = []

  /// The words of some fields, each with a weight.
  init(_ fields: [(text: String, weight: Int)]) {
    var found: [[UInt8]: Word] = [:]
    var place = 0
    for field in fields {
      WordSplitter.forEach(field.text) { word in
        let word = word.bytes
        found[word, default: Word(word: word, weight: 0, places: [])].weight += field.weight
        found[word]?.places.append(place)
        place += 1
        length += 1
      }
      place += Self.gap
    }
    words = found.values.sorted { $0.word.lexicographicallyPrecedes($1.word) }
  }

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.varint(length)
    writer.varint(words.count)
    for word in words {
      writer.blob(word.word)
      writer.varint(word.weight)
      writer.varint(word.places.count)
      var last = 0
      for place in word.places {
        writer.varint(place - last)
        last = place
      }
    }
    return writer.bytes
  }

  init(decoding bytes: RawSpan) throws(TidemarkError) {
    do throws(FormatError) {
      var reader = ByteReader(bytes)
      length = try reader.varint(atMost: .max)
      let count = try reader.varint(atMost: reader.remaining)
      words.reserveCapacity(count)
      for _ in 0..<count {
        let word = try reader.blob()
        let weight = try reader.varint(atMost: Int(UInt32.max))
        var places: [Int] = []
        var last = 0
        for _ in 0..<(try reader.varint(atMost: reader.remaining)) {
          last += try reader.varint(atMost: Int(UInt32.max))
          places.append(last)
        }
        words.append(Word(word: word, weight: weight, places: places))
      }
    } catch { throw IndexKeys.damaged("the words of an object") }
  }

  func places(_ word: [UInt8]) -> [Int] {
    let index = words.partitioningIndex { !$0.word.lexicographicallyPrecedes(word) }
    return index < words.count && words[index].word == word ? words[index].places : []
  }

  /// Whether the words stand one behind the other somewhere; the last one may be the beginning of a
  /// word.
  func holds(phrase: [[UInt8]], endsWithPrefix: Bool) -> Bool {
    var starts: Set<Int>?
    for (distance, word) in phrase.enumerated() {
      let isPrefix = endsWithPrefix && distance == phrase.count - 1
      let found = (isPrefix ? places(withPrefix: word) : places(word)).map { $0 - distance }
      starts = starts?.intersection(found) ?? Set(found)
    }
    return starts?.isEmpty != true
  }

  private func places(withPrefix prefix: [UInt8]) -> [Int] {
    words.filter { $0.word.starts(with: prefix) }.flatMap(\.places)
  }
}

/// The documents that have a word, in order, with how much it weighs in each.
struct Postings: Sendable, Equatable {
  var documents: [UInt64] = []
  var weights: [UInt32] = []

  init() {}

  var count: Int { documents.count }

  mutating func append(_ document: UInt64, _ weight: UInt32) {
    documents.append(document)
    weights.append(weight)
  }

  func encode(into writer: inout ByteWriter) {
    var last: UInt64 = 0
    for (document, weight) in zip(documents, weights) {
      writer.varint(document - last)
      writer.varint(UInt64(weight))
      last = document
    }
  }

  /// - Parameter count: how many there are.
  init(decoding bytes: RawSpan, count: Int) throws(TidemarkError) {
    do throws(FormatError) {
      var reader = ByteReader(bytes)
      documents.reserveCapacity(min(count, reader.remaining))
      weights.reserveCapacity(min(count, reader.remaining))
      var last: UInt64 = 0
      for _ in 0..<count {
        let (document, overflow) = last.addingReportingOverflow(try reader.varint())
        guard !overflow else { throw FormatError("postings out of order") }
        last = document
        append(last, UInt32(clamping: try reader.varint()))
      }
    } catch { throw IndexKeys.damaged("a block of a full-text index") }
  }

  /// The documents of several lists, and where some have the same, the sum.
  init(of lists: [Postings]) {
    guard lists.count != 1 else {
      self = lists[0]
      return
    }
    var all: [(document: UInt64, weight: UInt32)] = []
    all.reserveCapacity(lists.reduce(0) { $0 + $1.count })
    for list in lists { all += zip(list.documents, list.weights).map { ($0, $1) } }
    all.sort { $0.document < $1.document }
    self.init()
    for (document, weight) in all {
      if documents.last == document {
        weights[weights.count - 1] &+= weight
      } else {
        append(document, weight)
      }
    }
  }

  var isEmpty: Bool { documents.isEmpty }
}
