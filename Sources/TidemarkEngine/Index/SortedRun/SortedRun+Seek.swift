// Seeks in a sorted run: 16 keys make a block, 16 blocks a group. The samples, one for each group,
// are strings between the keys of the groups before and those of the group: see `RunLayout`.
extension SortedRun {
  /// How many keys lie before `cut`, which is also the ordinal of the first key behind it.
  func rank(_ cut: KeyCut) throws(IndexError) -> Int {
    switch cut.place {
    case .beforeAll: return 0
    case .afterAll: return count
    case .before, .after: break
    }
    guard count > 0 else { return 0 }
    // The boundary lies in the last group whose sample is not behind the cut: all keys of earlier
    // groups come before that sample. The first group needs none.
    let samples = 1..<max(1, header[.samples].count)
    let group = try samples.partitioningIndex { (number) throws(IndexError) in
      cut.precedes(try sample(number))
    }
    let first = (group - 1) * RunLayout.blocksPerSample
    let blocks = first..<max(first, min(first + RunLayout.blocksPerSample, blockCount))
    prefetchFirstKeys(blocks)
    // The boundary lies in the block before the first one whose first key is behind the cut.
    let block = try blocks.partitioningIndex { (number) throws(IndexError) in
      try isFirstKey(ofBlock: number) { cut.precedes($0) }
    }
    // Else all keys of the group are behind the cut.
    guard block > first else { return first * RunLayout.keysPerBlock }
    let rank = try withBlock(block - 1) { (block) throws(FormatError) in try block.rank(cut) }
    return (block - 1) * RunLayout.keysPerBlock + rank
  }

  /// The block that has a key, if the run has it; nil if it surely does not.
  func blockNumber(holding key: RawSpan) throws(IndexError) -> Int? {
    // The key itself, if the run has it, is the last of these.
    let countThrough = try rank(KeyCut(key: [UInt8](copying: key), place: .after))
    return countThrough > 0 ? (countThrough - 1) / RunLayout.keysPerBlock : nil
  }

  /// Asks the processor for some blocks' first keys, as far as read: a search then waits once.
  private func prefetchFirstKeys(_ numbers: Range<Int>) {
    for number in numbers { prefetchColumns(ofBlock: number) }
  }

  /// The sample that separates a group of blocks from those before.
  @_lifetime(borrow self)
  private func sample(_ number: Int) throws(IndexError) -> RawSpan {
    let strings = 4 * (header[.samples].count + 1)
    let offsets = try bytes(.samples, 4 * number, 8)
    do {
      let start = Int(try offsets.u32(at: 0))
      let end = Int(try offsets.u32(at: 4))
      guard start <= end else { throw FormatError("offsets out of order") }
      return try bytes(.samples, strings + start, end - start)
    } catch let error as IndexError {
      throw error
    } catch { throw damage(.samples, 4 * number) }
  }
}
