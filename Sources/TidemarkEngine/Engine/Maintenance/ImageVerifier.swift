/// Checks a sorted run of the index (an image): its checksums, and what it says against the log.
/// Runs lie on each other: each holds what was written after the sequence of the one beneath.
struct ImageVerifier {
  let row: Manifest.Image
  let manifest: Manifest
  let path: String
  let fileSystem: any FileSystem
  let contexts: ZstdContexts
  let keys: KeyRing
  private var fileName: String { StoreLayout.indexDirectory + "/" + row.fileName }

  /// The faults of the run by itself.
  /// - Parameter beneath: the sequence of the run beneath; 0 for none.
  /// - Returns: also the run, if nothing is wrong with it; it keeps its file open.
  func findings(beneath: UInt64) throws(TidemarkError) -> (found: [VerifyFinding], image: Image?) {
    let file: any File
    do {
      file = TolerantFile(try fileSystem.open(path + "/" + fileName, .read))
    } catch {
      guard error.number == ErrorNumber.noEntry else {
        return ([try describe(.fileSystem(error))], nil)
      }
      return ([finding(0, "an index image is missing")], nil)
    }
    let image: Image
    do throws(IndexError) {
      image = try keys.isEmpty ? Image(file: file) : keys.image(file)
    } catch {
      file.close()
      return ([try describe(error)], nil)
    }
    guard image.header.storeID == manifest.storeID, image.header.imageID == row.id,
      image.header.sequence == row.sequence, image.header.seed == manifest.hashSeed,
      image.header.base == beneath, image.header.seal?.keyID == row.keyID
    else {
      return ([finding(0, "the index image is that of another store or other sequences")], nil)
    }
    var found: [VerifyFinding] = []
    for chunk in 0..<image.chunkCount {
      do throws(IndexError) { try image.checkChunk(chunk) } catch {
        found.append(try describe(error))
      }
    }
    return (found, found.isEmpty ? image : nil)
  }

  /// The faults that a comparison with the log finds.
  /// - Parameter runs: this run and all beneath, without faults by themselves.
  func findings(comparing runs: RunList) throws(TidemarkError) -> [VerifyFinding] {
    // Without its key an encrypted log cannot be read.
    guard let newest = runs.newest, !newest.isOpaque, !(manifest.isEncrypted && keys.isEmpty)
    else { return [] }
    do throws(IndexError) {
      var comparison = ImageComparison(runs, manifest: manifest)
      if try compare(&comparison) { comparison.finish() }
      return comparison.problem.map { [finding(0, $0)] } ?? []
    } catch { return [try describe(error)] }
  }

  /// Gives all entry headers up to the runs' sequence to the comparison.
  /// - Returns: false where some could not be read: then a missing entry proves nothing.
  private func compare(_ comparison: inout ImageComparison) throws(IndexError) -> Bool {
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
    case .imageDamaged(let chunk):
      return finding(
        ImageLayout.fileOffset(
          ofChunk: chunk, tagBytes: row.keyID == nil ? 0 : BlockSealer.tagBytes),
        "the index image is damaged")
    case .imageInvalid(let reason):
      return finding(0, "the index image is damaged: \(reason.reason)")
    case .fileSystem(let error):
      guard error.isUnreadable else { throw TidemarkError(error, while: "verifying the index") }
      return finding(0, "the disk cannot read the index image")
    case .limitExceeded: return finding(0, "the index image is too large")
    }
  }
}

extension Image {
  var chunkCount: Int { ImageLayout.chunks(dataBytes: header.dataBytes) }

  /// Reads and checks a chunk, without keeping it; without the run's key (`isOpaque`) as stored.
  func checkChunk(_ chunk: Int) throws(IndexError) {
    let count = min(ImageLayout.chunkBytes, header.dataBytes - chunk << ImageLayout.chunkShift)
    guard !isOpaque else { return try checkSealed(chunk, count: count) }
    var bytes = [UInt8](repeating: 0, count: count)
    try bytes.withMutableRawSpan { (span) throws(IndexError) in
      try copyChunk(chunk, into: &span)
    }
  }
}
