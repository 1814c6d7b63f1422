internal import TidemarkEngine

/// A search in a full-text index, over one state of the store.
///
/// Ranks by Okapi BM25 with k1 = 1.2 and b = 0.75: S. Robertson, H. Zaragoza, "The Probabilistic
/// Relevance Framework: BM25 and Beyond", 2009.
struct TextSearch {
  private static let k1 = 1.2
  private static let b = 0.75

  private let index: SearchIndex
  private let query: TextQuery
  let view: EngineView
  private let parts: [[[UInt8]]]
  private let completes: Bool
  private let state: SearchIndex.State
  private var documents = 0
  private var mean = 1.0

  struct Ranked {
    var document: UInt64
    var score: Double
  }

  init(_ store: Store, _ index: SearchIndex, _ query: TextQuery) throws(TidemarkError) {
    self.index = index
    self.query = query
    (parts, completes) = query.split()
    var view = try store.engine.reader.view()
    var state = try index.refresh(view)
    // Another search, or a merge, may have taken up what this view does not have yet.
    while state.sequence > view.sequence {
      view = try store.engine.reader.view()
      state = try index.refresh(view)
    }
    self.view = view
    self.state = state
    documents = state.catalog.segments.reduce(state.tail.lengths.count) { $0 + $1.documents }
    let length =
      state.catalog.segments.reduce(0) { $0 + $1.words }
      + state.tail.lengths.values.reduce(0, +)
    mean = max(1, Double(length) / Double(max(1, documents)))
  }

  /// Whether the segments are still those that were read.
  var isCurrent: Bool {
    index.state.withLock { $0.catalog.lastNumber == state.catalog.lastNumber }
  }

  /// Documents that may have what is looked for, the best first.
  func ranked() throws(TidemarkError) -> [Ranked] {
    let words = Array(parts.joined())
    guard !words.isEmpty else { return [] }
    // A word that is asked for twice counts once.
    var unique: [(word: [UInt8], isPrefix: Bool)] = []
    for (place, word) in words.enumerated() {
      let isPrefix = completes && place == words.count - 1
      if !unique.contains(where: { $0.word == word && $0.isPrefix == isPrefix }) {
        unique.append((word, isPrefix))
      }
    }
    var scores: [Ranked] = []
    var lists: [[Postings]] = []
    var frequencies = [Int](repeating: 0, count: unique.count)
    for segment in state.catalog.segments {
      var found: [Postings] = []
      for (number, word) in unique.enumerated() {
        let postings = try index.postings(word.word, isPrefix: word.isPrefix, in: segment)
        frequencies[number] += postings.count
        found.append(postings)
      }
      lists.append(found)
    }
    let tail = unique.map { tailPostings($0.word, isPrefix: $0.isPrefix) }
    for (number, postings) in tail.enumerated() { frequencies[number] += postings.count }
    let weights = frequencies.map { frequency in
      let rest = Double(documents - min(frequency, documents))
      return log(1 + (rest + 0.5) / (Double(frequency) + 0.5))
    }
    for (segment, found) in zip(state.catalog.segments, lists) {
      let lengths = try index.lengths(segment)
      score(found, weights, &scores) { document in
        let place = Int(clamping: document &- segment.first)
        return document >= segment.first && place < lengths.count
          ? DocumentLength.length(lengths[place]) : 0
      }
    }
    score(tail, weights, &scores) { state.tail.lengths[$0] ?? 0 }
    scores.sort { $0.score != $1.score ? $0.score > $1.score : $0.document < $1.document }
    return scores
  }

  private func tailPostings(_ word: [UInt8], isPrefix: Bool) -> Postings {
    guard isPrefix else { return state.tail.words[word] ?? Postings() }
    return Postings(of: state.tail.words.filter { $0.key.starts(with: word) }.map(\.value))
  }

  /// Adds the documents that have the words.
  private func score(
    _ lists: [Postings], _ weights: [Double], _ scores: inout [Ranked],
    length: (UInt64) -> Int
  ) {
    var next = [Int](repeating: 0, count: lists.count)
    let needsAll = query.match != .any
    if needsAll, lists.contains(where: \.isEmpty) { return }
    while true {
      // The document to look at: of all words the furthest, of any the nearest.
      var document: UInt64?
      for (list, place) in zip(lists, next) {
        guard place < list.count else {
          if needsAll { return }
          continue
        }
        let candidate = list.documents[place]
        document = document.map { needsAll ? max($0, candidate) : min($0, candidate) } ?? candidate
      }
      guard let document else { return }
      var isInAll = true
      var sum = 0.0
      let norm = Self.k1 * (1 - Self.b + Self.b * Double(length(document)) / mean)
      for number in lists.indices {
        let list = lists[number]
        var place = next[number]
        if needsAll { place = list.documents.partitioningIndex(near: place) { $0 >= document } }
        next[number] = place
        guard place < list.count, list.documents[place] == document else {
          isInAll = false
          continue
        }
        let weight = Double(list.weights[place])
        sum += weights[number] * weight * (Self.k1 + 1) / (weight + norm)
        next[number] = place + 1
      }
      if isInAll || !needsAll { scores.append(Ranked(document: document, score: sum)) }
    }
  }

  /// The id of a document that has the words; nil where it is gone, or they do not stand one behind
  /// the other where they have to.
  func accepts(_ document: UInt64) throws(TidemarkError) -> [UInt8]? {
    guard let (key, id) = try index.row(document, in: view) else { return nil }
    guard parts.contains(where: { $0.count > 1 }) else { return id }
    let isThere = try view.derivedValue(key) { (value) throws(TidemarkError) in
      let vector = try WordVector(decoding: value)
      func holds(_ number: Int) -> Bool {
        vector.holds(
          phrase: parts[number], endsWithPrefix: completes && number == parts.count - 1)
      }
      return query.match == .any
        ? parts.indices.contains(where: holds) : parts.indices.allSatisfy(holds)
    }
    return isThere == true ? id : nil
  }
}

/// The natural logarithm, by its series: the library does without Foundation.
private func log(_ value: Double) -> Double {
  guard value > 0 else { return 0 }
  let exponent = Double(value.exponent)
  // Between 1 and 2; ln m = 2 artanh((m - 1) / (m + 1)).
  let ratio = (value.significand - 1) / (value.significand + 1)
  let square = ratio * ratio
  var term = ratio
  var sum = 0.0
  for odd in stride(from: 1, through: 31, by: 2) {
    sum += term / Double(odd)
    term *= square
  }
  return 2 * sum + exponent * 0.693_147_180_559_945_3
}
