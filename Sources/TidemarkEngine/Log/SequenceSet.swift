/// A set of sequences, kept as ranges that do not touch each other, ascending.
package struct SequenceSet: Sendable, Hashable {
  package private(set) var ranges: [ClosedRange<UInt64>] = []

  package init() {}
  package init(_ range: ClosedRange<UInt64>) { ranges = [range] }

  /// - Parameter sequences: ascending; repetitions do not matter.
  package init(ascending sequences: [UInt64]) {
    for sequence in sequences { insert(sequence...sequence) }
  }

  package var isEmpty: Bool { ranges.isEmpty }
  package var first: UInt64? { ranges.first?.lowerBound }
  package var last: UInt64? { ranges.last?.upperBound }
  package var count: UInt64 { ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound + 1) } }

  /// The index of the first range that ends at or behind a sequence.
  private func index(endingFrom sequence: UInt64) -> Int {
    ranges.partitioningIndex { $0.upperBound >= sequence }
  }

  package func contains(_ sequence: UInt64) -> Bool {
    let index = index(endingFrom: sequence)
    return index < ranges.count && ranges[index].contains(sequence)
  }

  /// Adds a range; cheap where it lies behind all others.
  package mutating func insert(_ range: ClosedRange<UInt64>) {
    // A range that ends right before this one, or begins right behind it, is joined, too.
    let before = range.lowerBound == 0 ? 0 : range.lowerBound - 1
    let start = index(endingFrom: before)
    var joined = range
    var end = start
    while end < ranges.count, ranges[end].lowerBound <= range.upperBound.saturatingSuccessor {
      let other = ranges[end]
      joined = min(joined.lowerBound, other.lowerBound)...max(joined.upperBound, other.upperBound)
      end += 1
    }
    ranges.replaceSubrange(start..<end, with: CollectionOfOne(joined))
  }

  /// Adds a sequence.
  /// - Returns: whether it was not there.
  @discardableResult
  package mutating func insert(_ sequence: UInt64) -> Bool {
    if let last = ranges.last, last.upperBound < sequence, sequence - last.upperBound == 1 {
      ranges[ranges.count - 1] = last.lowerBound...sequence
      return true
    }
    guard !contains(sequence) else { return false }
    insert(sequence...sequence)
    return true
  }

  /// Removes a sequence.
  /// - Returns: whether it was there.
  @discardableResult
  package mutating func remove(_ sequence: UInt64) -> Bool {
    guard contains(sequence) else { return false }
    remove(sequence...sequence)
    return true
  }

  /// Removes all sequences of a range.
  package mutating func remove(_ range: ClosedRange<UInt64>) {
    let start = index(endingFrom: range.lowerBound)
    var rest: [ClosedRange<UInt64>] = []
    var end = start
    while end < ranges.count, ranges[end].lowerBound <= range.upperBound {
      let other = ranges[end]
      if other.lowerBound < range.lowerBound {
        rest.append(other.lowerBound...(range.lowerBound - 1))
      }
      if other.upperBound > range.upperBound {
        rest.append((range.upperBound + 1)...other.upperBound)
      }
      end += 1
    }
    ranges.replaceSubrange(start..<end, with: rest)
  }

  /// Removes all sequences up to and including `sequence`.
  package mutating func removeAll(through sequence: UInt64) { remove(0...sequence) }

  /// The sequences, ascending.
  package var sequences: some Sequence<UInt64> { ranges.joined() }

  package mutating func formUnion(_ other: SequenceSet) {
    for range in other.ranges { insert(range) }
  }

  /// The sequences in this set that are not in the other.
  package func subtracting(_ other: SequenceSet) -> SequenceSet {
    var result = SequenceSet()
    var position = 0
    for range in ranges {
      var lower = range.lowerBound
      while position < other.ranges.count, other.ranges[position].lowerBound <= range.upperBound {
        let hole = other.ranges[position]
        if hole.upperBound >= lower {
          if hole.lowerBound > lower { result.ranges.append(lower...(hole.lowerBound - 1)) }
          lower = hole.upperBound.saturatingSuccessor
          // The hole may reach into the next range, too.
          if hole.upperBound >= range.upperBound { break }
        }
        position += 1
      }
      if lower <= range.upperBound { result.ranges.append(lower...range.upperBound) }
    }
    return result
  }

  package func intersection(_ other: SequenceSet) -> SequenceSet { subtracting(subtracting(other)) }

  /// The sequences that are in one of the two sets and not in the other.
  package func symmetricDifference(_ other: SequenceSet) -> SequenceSet {
    let ranges = subtracting(other).ranges + other.subtracting(self).ranges
    var result = SequenceSet()
    // In their order each goes to the end, and is joined with one that it touches.
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) { result.insert(range) }
    return result
  }

  /// At most `limit` ranges, which hold all these sequences: the least gaps between them close.
  package func coarsened(to limit: Int) -> SequenceSet {
    guard ranges.count > max(limit, 1) else { return self }
    let gaps = ranges.indices.dropFirst()
      .map { (index: $0, gap: ranges[$0].lowerBound - ranges[$0 - 1].upperBound) }
      .sorted { ($0.gap, $0.index) < ($1.gap, $1.index) }
    let joined = Set(gaps.prefix(ranges.count - max(limit, 1)).map(\.index))
    var result = SequenceSet()
    for (index, range) in ranges.enumerated() {
      if joined.contains(index), let last = result.ranges.popLast() {
        result.ranges.append(last.lowerBound...range.upperBound)
      } else {
        result.ranges.append(range)
      }
    }
    return result
  }
}

extension UInt64 { fileprivate var saturatingSuccessor: UInt64 { self == .max ? .max : self + 1 } }
