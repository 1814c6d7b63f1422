/// Checks a sorted run of the index: its checksums, and what it says against the
/// log. Runs lie on each other: each holds what was written after the sequence of the one beneath.
struct RunVerifier {
  let row: Manifest.SortedRun
  let manifest: Manifest
  let path: String
  let fileSystem: any FileSystem
  let contexts: ZstdContexts
  let keys: KeyRing
  private var fileName: String { StoreLayout.indexDirectory + "/" + row.fileName }

  /// The faults of the run by itself.
  /// - Parameter beneath: the sequence of the run beneath; 0 for none.
  /// - Returns: also the run, if nothing is wrong with it; it keeps its file open.
  func findings(beneath: UInt64) throws(TidemarkError) -> (found: [VerifyFinding], run: SortedRun?)
  {
    let file: any File
    do {
      file = TolerantFile(try fileSystem.open(path + "/" + fileName, .read))
    } catch {
      guard error.number == ErrorNumber.noEntry else {
        return ([try describe(.fileSystem(error))], nil)
      }
      return ([finding(0, "a sorted run is missing")], nil)
    }
    let run: SortedRun
    do throws(IndexError) {
      run = try keys.isEmpty ? SortedRun(file: file) : keys.run(file)
    } catch {
      file.close()
      return ([try describe(error)], nil)
    }
    guard run.header.storeID == manifest.storeID, run.header.runID == row.id,
      run.header.sequence == row.sequence, run.header.seed == manifest.hashSeed,
      run.header.base == beneath, run.header.seal?.keyID == row.keyID
    else {
      return ([finding(0, "the sorted run is that of another store or other sequences")], nil)
    }
    var found: [VerifyFinding] = []
    for chunk in 0..<run.chunkCount {
      do throws(IndexError) { try run.checkChunk(chunk) } catch {
        found.append(try describe(error))
      }
    }
    return (found, found.isEmpty ? run : nil)
  }

  /// The faults that a comparison with the log finds.
  /// - Parameter runs: this run and all beneath, without faults by themselves.
  func findings(comparing runs: RunList) throws(TidemarkError) -> [VerifyFinding] {
    // Without its key an encrypted log cannot be read.
    guard let newest = runs.newest, !newest.isOpaque, !(manifest.isEncrypted && keys.isEmpty)
    else { return [] }
    do throws(IndexError) {
      var comparison = RunComparison(runs, manifest: manifest)
      if try compare(&comparison) { comparison.finish() }
      return comparison.problem.map { [finding(0, $0)] } ?? []
    } catch { return [try describe(error)] }
  }

  /// Gives all entry headers up to the runs' sequence to the comparison.
  /// - Returns: false where some could not be read: then a missing entry proves nothing.
  private func compare(_ comparison: inout RunComparison) throws(IndexError) -> Bool {
    let caches = LogCaches(blockBytes: 0, frontBytes: 0)
    var isWhole = true
    for segmentRow in manifest.segments where segmentRow.firstSequence <= row.sequence {
      guard segmentRow.state == .sealed else {
        isWhole = false
        continue
      }
      let segment = Segment(
        segmentRow, storeID: manifest.storeID, storePath: path, fileSystem: fileSystem,
        contexts: contexts, keys: keys)
      // Found whole just before: a compaction has replaced it since, and nothing can be concluded.
      guard let frames = try? segment.frames() else { return false }
      for frame in frames {
        guard let front = try? segment.front(frame, caches: caches) else { return false }
        try comparison.add(front)
      }
    }
    return isWhole
  }

  private func finding(_ offset: Int, _ message: String) -> VerifyFinding {
    VerifyFinding(
      file: fileName, offset: offset, message: message, remedy: VerifyRemedy.rebuild(path),
      isDamageToAcknowledged: false)
  }

  private func describe(_ error: IndexError) throws(TidemarkError) -> VerifyFinding {
    switch error {
    case .runDamaged(let chunk):
      return finding(
        RunLayout.fileOffset(
          ofChunk: chunk, tagBytes: row.keyID == nil ? 0 : BlockSealer.tagBytes),
        "the sorted run is damaged")
    case .runInvalid(let reason):
      return finding(0, "the sorted run is damaged: \(reason.reason)")
    case .fileSystem(let error):
      guard error.isUnreadable else { throw TidemarkError(error, while: "verifying the index") }
      return finding(0, "the disk cannot read the sorted run")
    case .limitExceeded: return finding(0, "the sorted run is too large")
    }
  }
}

extension SortedRun {
  var chunkCount: Int { RunLayout.chunks(dataBytes: header.dataBytes) }

  /// Reads and checks a chunk, without keeping it; without the run's key (`isOpaque`) as stored.
  func checkChunk(_ chunk: Int) throws(IndexError) {
    let count = min(RunLayout.chunkBytes, header.dataBytes - chunk << RunLayout.chunkShift)
    guard !isOpaque else { return try checkSealed(chunk, count: count) }
    var bytes = [UInt8](repeating: 0, count: count)
    try bytes.withMutableRawSpan { (span) throws(IndexError) in
      try copyChunk(chunk, into: &span)
    }
  }
}
