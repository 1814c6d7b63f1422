/// Chooses how a compaction packs the values of the segment that it writes.
///
/// The default keeps a cold get cheap: small blocks with a dictionary. Dense is for space: full
/// blocks, a slow level, and a greater dictionary where that saves more than it takes.
struct CompactedLayout {
  /// Some of the values, spread over all of them.
  let values: [UInt8]
  /// Where each of these values stands in `values`.
  let places: [Range<Int>]
  /// About how many bytes all values have.
  let total: Int

  /// - Parameter bytes: values of fewer bytes get no dictionary; `.max` for never.
  func layout(dense: Bool, dictionaryFrom bytes: Int, contexts: ZstdContexts) -> SegmentLayout {
    var layout = SegmentLayout()
    if dense {
      layout.level = FrameCodecs.denseLevel
      layout.historyTarget = Limits.historyBlockBytes
      layout.historyLevel = FrameCodecs.denseHistoryLevel
    }
    let most = dense ? Limits.dictionaryBytes : Limits.trainedDictionaryBytes
    guard total >= bytes, let dictionary = trainedDictionary(most),
      !dense || pays(dictionary, contexts)
    else { return layout }
    layout.dictionary = dictionary
    // Small blocks only pay with a dictionary, which takes enough values to learn from.
    if !dense { layout.blockTarget = Limits.smallBlockBytes }
    return layout
  }

  /// A dictionary from some of the values; nil when there is too little to learn from.
  private func trainedDictionary(_ capacity: Int) -> [UInt8]? {
    var samples: [UInt8] = []
    var sizes: [Int] = []
    let step = max(1, values.count / Limits.dictionarySampleBytes)
    for (i, place) in places.enumerated() where i % step == 0 {
      let length = min(place.count, Limits.dictionarySampleToBytes)
      guard length >= Limits.dictionarySampleFromBytes else { continue }
      samples.append(contentsOf: values[place.lowerBound..<(place.lowerBound + length)])
      sizes.append(length)
    }
    return ZstdDictionary.trainDictionary(
      samples: samples, sampleSizes: sizes,
      capacity: min(capacity, total / Limits.dictionaryShare))
  }

  /// Whether a dictionary saves more than its two copies in the segment take, by trying it on some
  /// blocks. A failure counts as no: without a dictionary only space is lost.
  private func pays(_ dictionary: [UInt8], _ contexts: ZstdContexts) -> Bool {
    let level = FrameCodecs.denseLevel
    guard let prepared = try? ZstdDictionary(dictionary, level: level) else { return false }
    let plain = FrameCodecs(contexts: contexts)
    let with = FrameCodecs(contexts: contexts, dictionary: prepared)
    var saved = 0
    var looked = 0
    for block in someBlocks() {
      var (before, after): ([UInt8], [UInt8]) = ([], [])
      guard
        (try? plain.encode(block.rawSpan, level: level, appendingTo: &before)) != nil,
        (try? with.encode(block.rawSpan, level: level, appendingTo: &after)) != nil
      else { return false }
      saved += before.count - after.count
      looked += block.count
    }
    guard looked > 0 else { return false }
    // The second copy begins a page of its own.
    let cost = 2 * dictionary.count + FormatConstants.segmentHeaderPageBytes
    return Double(saved) * Double(total) / Double(looked) > Double(cost)
  }

  /// Some blocks spread over the values, about as they will be written.
  private func someBlocks() -> [[UInt8]] {
    let blocks = values.count / Limits.blockBytes + 1
    let step = max(1, blocks / Limits.layoutSampleBlocks)
    var chosen: [[UInt8]] = []
    var position = 0
    var last = -1
    for place in places {
      let block = position / Limits.blockBytes
      position += place.count
      guard block.isMultiple(of: step), place.count > 0 else { continue }
      if block != last { chosen.append([]) }
      last = block
      let room = Limits.blockBytes - chosen[chosen.count - 1].count
      chosen[chosen.count - 1].append(contentsOf: values[place].prefix(room))
    }
    return chosen
  }
}
