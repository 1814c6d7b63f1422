/// A set of sequences as runs in order: sequences lie together more often than not.
struct SequenceSet: Sendable, Hashable {
  /// In order, with gaps between them.
  private(set) var runs: [ClosedRange<UInt64>] = []

  var isEmpty: Bool { runs.isEmpty }

  var count: Int { runs.reduce(0) { $0 + $1.count } }

  var first: UInt64? { runs.first?.lowerBound }

  init() {}

  init(_ sequences: some Sequence<UInt64>) {
    for sequence in sequences { insert(sequence) }
  }

  /// The index of the first run that ends at a sequence or after it.
  private func index(_ sequence: UInt64) -> Int {
    var low = 0
    var high = runs.count
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].upperBound < sequence { low = middle + 1 } else { high = middle }
    }
    return low
  }

  func contains(_ sequence: UInt64) -> Bool {
    let index = index(sequence)
    return index < runs.count && runs[index].contains(sequence)
  }

  /// - Returns: whether it was not there.
  @discardableResult
  mutating func insert(_ sequence: UInt64) -> Bool {
    let index = index(sequence)
    if index < runs.count, runs[index].contains(sequence) { return false }
    let joinsNext = index < runs.count && runs[index].lowerBound == sequence + 1
    let joinsLast = index > 0 && runs[index - 1].upperBound == sequence - 1
    switch (joinsLast, joinsNext) {
    case (true, true):
      runs[index - 1] = runs[index - 1].lowerBound...runs[index].upperBound
      runs.remove(at: index)
    case (true, false): runs[index - 1] = runs[index - 1].lowerBound...sequence
    case (false, true): runs[index] = sequence...runs[index].upperBound
    case (false, false): runs.insert(sequence...sequence, at: index)
    }
    return true
  }

  /// - Returns: whether it was there.
  @discardableResult
  mutating func remove(_ sequence: UInt64) -> Bool {
    let index = index(sequence)
    guard index < runs.count, runs[index].contains(sequence) else { return false }
    let run = runs[index]
    var rest: [ClosedRange<UInt64>] = []
    if run.lowerBound < sequence { rest.append(run.lowerBound...(sequence - 1)) }
    if run.upperBound > sequence { rest.append((sequence + 1)...run.upperBound) }
    runs.replaceSubrange(index...index, with: rest)
    return true
  }

  /// Removes all up to a sequence.
  mutating func removeAll(through sequence: UInt64) {
    let index = index(sequence)
    runs.removeFirst(index)
    guard let run = runs.first, run.lowerBound <= sequence else { return }
    if run.upperBound == sequence {
      runs.removeFirst()
    } else {
      runs[0] = (sequence + 1)...run.upperBound
    }
  }

  /// Adds a run that lies behind all others.
  /// - Returns: false when it does not.
  mutating func append(_ run: ClosedRange<UInt64>) -> Bool {
    if let last = runs.last, run.lowerBound <= last.upperBound { return false }
    if let last = runs.last, run.lowerBound == last.upperBound + 1 {
      runs[runs.count - 1] = last.lowerBound...run.upperBound
    } else {
      runs.append(run)
    }
    return true
  }
}

extension SequenceSet: Sequence {
  struct Iterator: IteratorProtocol {
    private var runs: ArraySlice<ClosedRange<UInt64>>
    private var next_: UInt64?

    init(_ runs: [ClosedRange<UInt64>]) {
      self.runs = runs[...]
      next_ = runs.first?.lowerBound
    }

    mutating func next() -> UInt64? {
      guard let result = next_, let run = runs.first else { return nil }
      if result < run.upperBound {
        next_ = result + 1
      } else {
        runs.removeFirst()
        next_ = runs.first?.lowerBound
      }
      return result
    }
  }

  func makeIterator() -> Iterator { Iterator(runs) }
}
