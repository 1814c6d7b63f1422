extension Compactor {
  /// Puts a rewritten segment in the place of its inputs, in one step of MANIFEST. Files of inputs
  /// go only after it, so that MANIFEST never lists a file that is not there; the next opening
  /// removes unlisted ones. A reader that finds an input gone looks for the new segment.
  func replace(_ swap: CompactionSwap) throws(TidemarkError) {
    var goneRuns: [Manifest.SortedRun] = []
    if PlantedBug.isOn(.inputsRemovedFirst) { for old in swap.inputs { discard(old.fileName) } }
    do throws(TidemarkError) {
      try writer.changeManifest({ (manifest) throws(TidemarkError) in
        goneRuns = try manifest.replace(swap)
        return true  // MANIFEST is to be written.
      }) { manifest in
        // MANIFEST is on the disk, and nobody writes before readers see the new segment.
        let output = swap.row.map { row in
          Segment(
            row, storeID: manifest.storeID, storePath: path, fileSystem: fileSystem,
            contexts: contexts, keys: keys)
        }
        reader.replace(swap, by: output)
      }
    } catch {
      // Where MANIFEST was written in part, it may list the file, and `writer` keeps it.
      if let row = swap.row {
        writer.discard(StoreLayout.logDirectory + "/" + row.fileName) { _ in false }
      }
      throw error
    }
    // The log has another length: writers to caches may no longer have to wait.
    compareWithCacheBound()
    for segment in swap.inputs { discard(segment.fileName) }
    discard(goneRuns)
  }
}

extension Manifest {
  /// Lists a new segment in the place of others.
  /// - Returns: the sorted runs of the index that are out of date and listed no more.
  fileprivate mutating func replace(_ swap: CompactionSwap) throws(TidemarkError) -> [SortedRun] {
    let inputs = Set(swap.inputs.map(\.id))
    guard let position = segments.firstIndex(where: { inputs.contains($0.id) }),
      segments[position...].prefix(inputs.count).allSatisfy({ inputs.contains($0.id) }),
      segments.count >= position + inputs.count
    else { throw TidemarkError(.inputOutput, "the log was rewritten by somebody else; try again") }
    segments.removeSubrange(position..<(position + inputs.count))
    if let row = swap.row { segments.insert(row, at: position) }
    // Up to `evictedThrough`, a link to an older cached version may lead to a dropped one.
    evictedThrough = max(evictedThrough, swap.evictedThrough)
    if !PlantedBug.isOn(.outdatedRunKept) {
      droppedThrough = max(droppedThrough, swap.droppedThrough)
    }
    // Runs that end before a dropped tombstone still show its key as live, and the log no longer
    // says otherwise. The newest run ends last, and without it the older ones are of no use.
    guard runs.last?.sequence ?? 0 < droppedThrough else { return [] }
    defer { runs = [] }
    return runs
  }
}
