extension Engine {
  /// Copies the store to a new directory while it is being written; the copy holds everything
  /// that was committed when the call began.
  ///
  /// The MANIFEST of the copy is written last, so a backup that was interrupted is not taken
  /// for a store.
  /// - Parameters:
  ///   - target: a path where nothing is, or an empty directory.
  ///   - fileSystem: where the target lies; nil for that of the store.
  /// - Throws: `damaged` when the disk could not read parts of the store: the copy is made all the
  ///   same, with everything else, and the damage to its log is on record in it.
  package func backup(
    to target: String, fileSystem: (any FileSystem)? = nil
  ) throws(TidemarkError) {
    let fileSystem = fileSystem ?? self.fileSystem
    // The view stays open to the end: compactions keep the entries that it shows, and sweeps the
    // attachments that these name, which are copied last.
    let view = try reader.view()
    defer { _ = view.sequence }
    if writer.hasAppender {
      try writer.flush()
      try writer.sealSegments()
    }
    var (manifest, segments, opened) = try openSegments()
    defer { for file in opened.values { file.close() } }
    _ = try StoreTarget.prepare(
      target, fileSystem, while: "creating the copy",
      isEmpty: "the copy's path is empty; give a directory",
      isTaken: "there is something at \(target) already; give a path where nothing is")
    try StoreDirectory.createFolders(target, fileSystem)
    var unreadable: [VerifyFinding] = []
    for segment in segments where segment.lastSequence >= segment.firstSequence {
      guard let file = opened[segment.id] else { continue }
      let pages = try copy(
        file, length: segment.isSealed ? segment.usedLength() : nil,
        to: target + "/" + segment.fileName, fileSystem)
      for page in pages {
        unreadable.append(
          VerifyFinding(
            file: segment.fileName, offset: page, length: TolerantFile.pageBytes,
            sequences: segment.range, message: "the disk could not read this page for the copy",
            remedy: VerifyRemedy.repair(target), isDamageToAcknowledged: true,
            segmentID: segment.id))
      }
    }
    let empty = Set(segments.filter { $0.lastSequence < $0.firstSequence }.map(\.id))
    manifest.segments.removeAll { empty.contains($0.id) }
    manifest.runs = try copyRuns(manifest.runs, to: target, fileSystem)
    let faults = try attachments.copy(to: target, fileSystem)
    manifest.damage += manifest.unrecorded(unreadable)
    manifest.isClosedCleanly = manifest.segments.allSatisfy { $0.state == .sealed }
    // `update` raises the generation to 1, as in a new store.
    manifest.generation = 0
    // Another boot than the present one: an active segment is recovered as after a power cut.
    manifest.bootID = [UInt8](repeating: 0, count: 16)
    for folder in [StoreLayout.logDirectory, StoreLayout.indexDirectory] {
      do { try fileSystem.syncDirectory(target + "/" + folder) } catch {
        throw TidemarkError(error, while: "writing the copy")
      }
    }
    try ManifestStore(fileSystem, storePath: target).update(&manifest)
    try sealCopy(target, manifest, fileSystem)
    let files = unreadable.map(\.file) + faults.compactMap(\.file)
    guard let first = files.first else { return }
    throw TidemarkError(
      .damaged,
      "the copy at \(target) is made, but \(files.count) places of the store could not be read, "
        + "the first of them in \(first); verify both, and repair what is left of the log",
      file: first, offset: unreadable.first?.offset ?? 0, sequences: unreadable.first?.sequences)
  }

  /// Opens the copy once, which seals a segment that was being written. Not where damage is on
  /// record: then the copy, like the store, is refused for writing until it is repaired.
  private func sealCopy(
    _ target: String, _ manifest: Manifest, _ fileSystem: any FileSystem
  ) throws(TidemarkError) {
    let isDamaged = manifest.damage.contains { $0.state == .found }
    if manifest.isClosedCleanly || isDamaged { return }
    var writing = EngineConfiguration()
    writing.access = .write
    writing.encryption = keys.encryption
    let copy = try Engine.open(
      target, configuration: writing,
      environment: EngineEnvironment(
        fileSystem: fileSystem, clock: environment.clock, random: environment.random))
    try copy.close()
  }

  /// MANIFEST and its segments, with files opened for the copy alone, which the caller closes: they
  /// stay readable though a compaction removes them or the store is closed.
  private func openSegments() throws(TidemarkError) -> (Manifest, [Segment], [UInt64: any File]) {
    var attempt = 0
    while true {
      let log = reader.snapshot
      var files: [UInt64: any File] = [:]
      do throws(FileSystemError) {
        for segment in log.segments {
          files[segment.id] = try self.fileSystem.open(path + "/" + segment.fileName, .read)
        }
        return (log.manifest, log.segments, files)
      } catch {
        for file in files.values { file.close() }
        attempt += 1
        // Once more, if a compaction has replaced one of the segments meanwhile.
        guard attempt < Limits.openAttempts, log.segments.contains(where: { !reader.isCurrent($0) })
        else { throw TidemarkError(error, while: "opening the log") }
      }
    }
  }

  /// Copies runs of the index, oldest first, up to one that cannot be opened or read: each depends
  /// on those before it, and the copy's first opening makes what is missing from the log.
  private func copyRuns(
    _ rows: [Manifest.SortedRun], to target: String, _ fileSystem: any FileSystem
  ) throws(TidemarkError) -> [Manifest.SortedRun] {
    var copied: [Manifest.SortedRun] = []
    for row in rows {
      let name = "/" + StoreLayout.indexDirectory + "/" + row.fileName
      let source: any File
      do { source = try self.fileSystem.open(path + name, .read) } catch { break }
      defer { source.close() }
      let pages = try copy(source, length: row.length, to: target + name, fileSystem)
      guard pages.isEmpty else {
        try? fileSystem.remove(target + name)
        break
      }
      copied.append(row)
    }
    return copied
  }

  /// Copies a file and syncs the copy.
  /// - Parameter length: nil copies up to the end of the file.
  /// - Returns: the pages that the disk could not read: there the copy has zeros.
  private func copy(
    _ file: any File, length: Int?, to path: String, _ fileSystem: any FileSystem
  ) throws(TidemarkError) -> [Int] {
    let source = TolerantFile(file)
    do throws(FileSystemError) {
      let file = try fileSystem.open(path, .create)
      defer { file.close() }
      let end = if let length { length } else { try source.length() }
      var offset = 0
      while offset < end {
        let bytes = try source.read(min(1 << 20, end - offset), at: offset)
        guard !bytes.isEmpty else { break }
        try file.writeFully(bytes.rawSpan, at: offset)
        offset += bytes.count
      }
      try file.sync()
      return source.unreadablePages
    } catch { throw TidemarkError(error, while: "writing the copy") }
  }
}
