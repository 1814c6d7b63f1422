extension Engine {
  /// Puts rewritten segments in the place of their inputs, in one step of MANIFEST.
  func replace(_ swap: CompactionSwap) throws(TidemarkError) {
    do throws(TidemarkError) { try install(swap) } catch {
      // If MANIFEST stopped midway it may list them by now.
      if writer.withLock({ $0.poison == nil }) {
        for row in swap.rows {
          try? environment.fileSystem.remove(
            path + "/" + StoreLayout.logDirectory + "/" + row.fileName)
        }
      }
      throw error
    }
  }

  private func install(_ swap: CompactionSwap) throws(TidemarkError) {
    var goneImages: [Manifest.Image] = []
    if PlantedBug.isOn(.inputsRemovedFirst) {
      for old in swap.inputs { try? environment.fileSystem.remove(path + "/" + old.fileName) }
    }
    try writer.withLock { (state: inout WriterState) throws(TidemarkError) in
      try checkWritable(state)
      var manifest = state.manifest
      let inputs = Set(swap.inputs.map(\.id))
      guard let position = manifest.segments.firstIndex(where: { inputs.contains($0.id) }),
        manifest.segments[position...].prefix(inputs.count).allSatisfy({ inputs.contains($0.id) }),
        manifest.segments.count >= position + inputs.count
      else {
        throw TidemarkError(.inputOutput, "the log was rewritten by somebody else; try again")
      }
      manifest.segments.replaceSubrange(position..<(position + inputs.count), with: swap.rows)
      manifest.droppedThrough = max(manifest.droppedThrough, swap.droppedThrough)
      manifest.evictedThrough = max(manifest.evictedThrough, swap.evictedThrough)
      if PlantedBug.isOn(.outdatedImageKept) {
        manifest.droppedThrough = state.manifest.droppedThrough
      }
      let newDropped = manifest.droppedThrough
      // Runs serve together: the newest says whether they know a delete that is gone.
      if manifest.images.last?.sequence ?? 0 < newDropped {
        goneImages = manifest.images
        manifest.images = []
      }
      try updateManifest(manifest, &state)
      let outputs = swap.rows.map { row in
        Segment(
          row, storeID: manifest.storeID, storePath: path,
          fileSystem: environment.fileSystem, contexts: contexts, keys: keys)
      }
      reading.withLock { read in
        let place = read.segments.firstIndex { inputs.contains($0.id) } ?? 0
        read.segments.removeAll { inputs.contains($0.id) }
        read.segments.insert(contentsOf: outputs, at: place)
        // Caches give entries up while these are rewritten, and it is not known of which of them
        // the rewrite knew: counted twice they are looked for again, forgotten they would stay.
        let late = max(0, read.usage.cached(in: swap.inputs) - swap.cachedBefore)
        for id in inputs { read.usage.rows[id] = nil }
        read.notes.remove(inputs)
        read.replacements += 1
        for (row, superseded) in zip(swap.rows, swap.superseded) {
          read.usage.rows[row.id] = SpaceUsage.Row(
            superseded: superseded.superseded + late, cached: superseded.cached + late)
        }
      }
      lookAtCaches(&state)
    }
    writer.broadcast()
    caches.removeSequences()
    // A file that cannot be removed now is a leftover, which the next opening clears away.
    for segment in swap.inputs { try? environment.fileSystem.remove(path + "/" + segment.fileName) }
    removeFiles(of: goneImages)
  }
}
