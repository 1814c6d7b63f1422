extension Image {
  /// How many keys are not behind `cut`: the ordinal of the first one that is.
  func rank(_ cut: KeyCut) throws(IndexError) -> Int {
    switch cut.place {
    case .beforeAll: return 0
    case .afterAll: return count
    case .before, .after: break
    }
    guard count > 0 else { return 0 }
    // The last group of blocks whose sample is not behind the cut holds the boundary, since a
    // sample separates its group from all keys before.
    var low = 1
    var high = header[.samples].count
    while low < high {
      let middle = (low + high) / 2
      if cut.precedes(try sample(middle)) { high = middle } else { low = middle + 1 }
    }
    var block = (low - 1) * ImageLayout.blocksPerSample
    var end = min(block + ImageLayout.blocksPerSample, blockCount)
    let first = block
    prefetchFirstKeys(first..<end)
    // The last block whose first key is not behind the cut.
    while block < end {
      let middle = (block + end) / 2
      if try isBehind(cut, firstKeyOf: middle) { end = middle } else { block = middle + 1 }
    }
    guard block > first else { return first * ImageLayout.keysPerBlock }
    let found = try self.block(block - 1)
    do {
      return (block - 1) * ImageLayout.keysPerBlock + (try found.rank(cut))
    } catch {
      throw blockDamage(block - 1)
    }
  }

  /// Asks the processor for the first keys of some blocks, so that a search among them waits once.
  private func prefetchFirstKeys(_ numbers: Range<Int>) {
    for number in numbers {
      guard isLoaded(.blockOffsets, number * ImageLayout.offsetBytes, 2 * ImageLayout.offsetBytes),
        let place = try? blockRange(number)
      else { return }
      let records = ImageLayout.keysPerBlock * ImageLayout.recordBytes
      prefetch(.blocks, place.start + records, min(64, place.end - place.start - records))
    }
  }

  private func isBehind(_ cut: KeyCut, firstKeyOf number: Int) throws(IndexError) -> Bool {
    let block = try block(number)
    do {
      var walk = block.walk
      try walk.next()
      return cut.precedes(walk.rest)
    } catch {
      throw blockDamage(number)
    }
  }

  /// The sample before a group of blocks.
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
    } catch {
      throw damage(.samples, 4 * number)
    }
  }
}
