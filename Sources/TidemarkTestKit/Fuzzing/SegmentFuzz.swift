internal import TidemarkEngine

/// Reads a store whose only segment is the input: recovery, both walks, verification, repair and
/// reads. The body is the fields of a header page, as far as these go, and what stands behind the
/// two pages. Options: bit 1, the segment is sealed; bit 2, it is not; bit 3, the machine was
/// started again since it was written; bit 4, the store is repaired and then written to.
enum SegmentFuzz {
  private static let salt = FrameFuzz.salt
  private static let headerFields = 164
  private static let storeID = [UInt8](repeating: 7, count: 16)

  static func run(_ input: FuzzInput) throws(FuzzFinding) {
    let page = FormatConstants.segmentHeaderPageBytes
    var bytes = input.slice(0, headerFields)
    bytes.append(contentsOf: repeatElement(0, count: page - bytes.count))
    bytes += bytes
    bytes += input.slice(headerFields, input.body.count)
    let isSealed = input.flag(1)
    if input.repairs { ChecksumRepair.segment(&bytes, salt: salt, isSealed: isSealed) }
    // Nothing is reached behind a header that is refused.
    guard let header = try? SegmentHeader(decodingPage: bytes.rawSpan) else { return }
    var store = FuzzDisk()
    var row = Manifest.Segment(
      id: header.segmentID, state: isSealed ? .sealed : .active, kind: header.kind, salt: salt,
      firstSequence: header.baseSequence)
    row.lastSequence = row.firstSequence - 1
    if isSealed {
      let start = bytes.count - FormatConstants.segmentFooterBytes
      guard start > 0,
        let footer = try? SegmentFooter(
          decoding: bytes.rawSpan.extracting(start..<bytes.count), salt: salt)
      else { return }
      row.lastSequence = footer.lastSequence
      row.length = bytes.count
      row.entryCount = footer.slotCount
      row.rawBytes = footer.rawBytes
      row.chain = footer.chain
    }
    store.files[StoreLayout.logDirectory + "/" + row.fileName] = bytes
    store.set(manifest(row, header, wasRestarted: input.flag(3)))
    do {
      let disk = try store.disk()
      try walk(row, header, disk)
      let exercise = StoreExercise(disk, expected: nil)
      try exercise.read()
      try exercise.verify()
      if input.flag(4) {
        if try exercise.repair() { try exercise.write(path: StoreExercise.repaired) }
      } else {
        try exercise.write(path: FuzzDisk.path)
      }
    } catch let error as FuzzFinding {
      throw error
    } catch {}
  }

  private static func manifest(
    _ row: Manifest.Segment, _ header: SegmentHeader, wasRestarted: Bool
  ) -> Manifest {
    var manifest = Manifest(
      storeID: header.storeID, replicaID: storeID,
      bootID: [UInt8](repeating: wasRestarted ? 1 : 0, count: 16), hashSeed: 5)
    manifest.generation = 3
    manifest.segments = [row]
    manifest.nextSegmentID = min(header.segmentID, 1 << 61) + 1
    manifest.lastSequence = row.lastSequence
    manifest.isClosedCleanly = row.state == .sealed
    manifest.epochs = [.init(epoch: 9, firstSequence: 1)]
    return manifest
  }

  private static func walk(
    _ row: Manifest.Segment, _ header: SegmentHeader, _ disk: MemoryFileSystem
  ) throws {
    let name = FuzzDisk.path + "/" + StoreLayout.logDirectory + "/" + row.fileName
    let file = try disk.open(name, .read)
    let contexts = ZstdContexts()
    for sameBoot in [false, true] {
      let recovery = try TailRecovery(
        row: row, file: file, codecs: FrameCodecs(contexts: contexts), sameBoot: sameBoot)
      let tail = try recovery.run { _ in }.get()
      guard tail.end <= (try file.length()) else {
        throw FuzzFinding("the log ends behind the end of the file")
      }
    }
    let codecs =
      (try? SegmentReader.codecs(file, header: header, contexts: contexts, sealer: nil))
      ?? FrameCodecs(contexts: contexts)
    var scan = FrameWalker(
      try WindowReader(file), salt: row.salt, codecs: codecs, from: header.firstFrame)
    var last = -1
    while let piece = try scan.nextPiece() {
      guard scan.offset > last else { throw FuzzFinding("a walk over frames stands still") }
      last = scan.offset
      guard case .frame(let front) = piece else { continue }
      _ = try? front.places()
      for entry in front.entries { _ = try? front.attributes(of: entry) }
    }
  }

  // MARK: Seeds

  static func seeds() -> [[UInt8]] {
    var seeds: [[UInt8]] = []
    for (number, base) in FuzzStore.all.enumerated() {
      for row in base.manifest?.segments ?? [] {
        let name = StoreLayout.logDirectory + "/" + row.fileName
        guard var bytes = base.disk.files[name], bytes.count < 24 << 10 else { continue }
        let options: UInt8 = row.state == .sealed ? 0x03 : 0x05
        // The salt is to be the one that repair uses, and bytes without repair are to be valid.
        resalt(&bytes, from: row.salt, isSealed: row.state == .sealed)
        let body =
          bytes.prefix(headerFields)
          + bytes.dropFirst(FormatConstants.segmentHeaderBytes)
        seeds.append([options | UInt8(number & 1) << 4] + body)
        if row.state == .active { seeds.append([options | 8] + body.dropLast(40)) }
      }
    }
    return seeds
  }

  private static func resalt(_ bytes: inout [UInt8], from old: UInt32, isSealed: Bool) {
    var offset = Int(bytes.word32(60))
    while offset + 64 <= bytes.count {
      if bytes.word32(offset) == FormatConstants.frameSync ^ old {
        bytes.set(FormatConstants.frameSync ^ salt, at: offset)
      }
      offset += FormatConstants.frameAlignment
    }
    ChecksumRepair.segment(&bytes, salt: salt, isSealed: isSealed)
  }
}
