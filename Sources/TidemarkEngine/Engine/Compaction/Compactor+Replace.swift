extension Compactor {
  /// Puts rewritten segments in the place of their inputs, in one step of MANIFEST. Files of inputs
  /// go only after it, so that MANIFEST never lists a file that is not there; the next opening
  /// removes unlisted ones. A reader that finds an input gone looks for the new segment.
  func replace(_ swap: CompactionSwap) throws(TidemarkError) {
    var goneImages: [Manifest.Image] = []
    // A planted bug is a mistake built in only so that tests must find it.
    if PlantedBug.isOn(.inputsRemovedFirst) { for old in swap.inputs { discard(old.fileName) } }
    do throws(TidemarkError) {
      try writer.changeManifest({ (manifest) throws(TidemarkError) in
        goneImages = try manifest.replace(swap)
        return true  // MANIFEST is to be written.
      }) { manifest in
        // MANIFEST is on the disk, and nobody writes before readers see the new segments.
        let outputs = swap.rows.map { row in
          Segment(
            row, storeID: manifest.storeID, storePath: path, fileSystem: fileSystem,
            contexts: contexts, keys: keys)
        }
        reader.replace(swap, by: outputs)
      }
    } catch {
      // Where MANIFEST was written in part, it may list the files, and `writer` keeps them.
      writer.discard(swap.rows.map { StoreLayout.logDirectory + "/" + $0.fileName })
      throw error
    }
    // The log has another length: writers to caches may no longer have to wait.
    compareWithCacheBound()
    for segment in swap.inputs { discard(segment.fileName) }
    discard(goneImages)
  }
}

extension Manifest {
  /// Lists new segments in the place of others.
  /// - Returns: the sorted runs of the index (images) that are out of date and listed no more.
  fileprivate mutating func replace(_ swap: CompactionSwap) throws(TidemarkError) -> [Image] {
    let inputs = Set(swap.inputs.map(\.id))
    guard let position = segments.firstIndex(where: { inputs.contains($0.id) }),
      segments[position...].prefix(inputs.count).allSatisfy({ inputs.contains($0.id) }),
      segments.count >= position + inputs.count
    else { throw TidemarkError(.inputOutput, "the log was rewritten by somebody else; try again") }
    segments.replaceSubrange(position..<(position + inputs.count), with: swap.rows)
    // Up to `evictedThrough`, a link to an older cached version may lead to a dropped one.
    evictedThrough = max(evictedThrough, swap.evictedThrough)
    if !PlantedBug.isOn(.outdatedImageKept) {
      droppedThrough = max(droppedThrough, swap.droppedThrough)
    }
    // Runs that end before a dropped tombstone still show its key as live, and the log no longer
    // says otherwise. The newest run ends last, and without it the older ones are of no use.
    guard images.last?.sequence ?? 0 < droppedThrough else { return [] }
    defer { images = [] }
    return images
  }
}
