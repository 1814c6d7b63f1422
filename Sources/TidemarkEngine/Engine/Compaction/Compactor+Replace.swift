extension Compactor {
  /// Puts rewritten segments in the place of their inputs, in one step of MANIFEST.
  func replace(_ swap: CompactionSwap) throws(TidemarkError) {
    var goneImages: [Manifest.Image] = []
    if PlantedBug.isOn(.inputsRemovedFirst) { for old in swap.inputs { discard(old.fileName) } }
    do throws(TidemarkError) {
      try writer.changeManifest({ (manifest) throws(TidemarkError) in
        goneImages = try manifest.replace(swap)
        return true
      }) { manifest in
        let outputs = swap.rows.map { row in
          Segment(
            row, storeID: manifest.storeID, storePath: path, fileSystem: fileSystem,
            contexts: contexts, keys: keys)
        }
        reader.replace(swap, by: outputs)
      }
    } catch {
      writer.discard(swap.rows.map { StoreLayout.logDirectory + "/" + $0.fileName })
      throw error
    }
    lookAtCaches()
    for segment in swap.inputs { discard(segment.fileName) }
    discard(goneImages)
  }
}

extension Manifest {
  /// Lists new segments in the place of others.
  /// - Returns: the runs of the index that can serve no more.
  fileprivate mutating func replace(_ swap: CompactionSwap) throws(TidemarkError) -> [Image] {
    let inputs = Set(swap.inputs.map(\.id))
    guard let position = segments.firstIndex(where: { inputs.contains($0.id) }),
      segments[position...].prefix(inputs.count).allSatisfy({ inputs.contains($0.id) }),
      segments.count >= position + inputs.count
    else {
      throw TidemarkError(.inputOutput, "the log was rewritten by somebody else; try again")
    }
    segments.replaceSubrange(position..<(position + inputs.count), with: swap.rows)
    evictedThrough = max(evictedThrough, swap.evictedThrough)
    if !PlantedBug.isOn(.outdatedImageKept) {
      droppedThrough = max(droppedThrough, swap.droppedThrough)
    }
    // Runs serve together: the newest says whether they know a delete that is gone.
    guard images.last?.sequence ?? 0 < droppedThrough else { return [] }
    defer { images = [] }
    return images
  }
}
