/// Checks every byte of one segment.
struct SegmentVerifier {
  let row: Manifest.Segment
  let storeID: [UInt8]
  /// The store's directory.
  let path: String
  let fileSystem: any FileSystem
  let contexts: ZstdContexts
  /// The user's keys; without any an encrypted segment's checksums are checked and no more.
  let keys: KeyRing
  /// The decoder of the segment.
  private(set) var codecs: FrameCodecs
  /// Whether the machine runs since before the last writer opened the store.
  let sameBoot: Bool

  var findings: [VerifyFinding] = []
  /// The attachments that owned entries name.
  var attachments: Set<AttachmentID> = []
  var entries = 0
  var bytes = 0
  /// The highest sequence found in it.
  var lastSequence: UInt64

  init(
    _ row: Manifest.Segment, manifest: Manifest, path: String, fileSystem: any FileSystem,
    contexts: ZstdContexts, keys: KeyRing, sameBoot: Bool
  ) {
    self.row = row
    storeID = manifest.storeID
    self.path = path
    self.fileSystem = fileSystem
    self.contexts = contexts
    self.keys = keys
    codecs = FrameCodecs(contexts: contexts)
    self.sameBoot = sameBoot
    lastSequence = row.state == .sealed ? row.lastSequence : row.firstSequence - 1
  }

  var fileName: String { StoreLayout.logDirectory + "/" + row.fileName }
  /// The sequences that the segment covers, for findings about the whole of it.
  var range: ClosedRange<UInt64> { row.firstSequence...max(row.firstSequence, row.lastSequence) }

  /// Notes that something is wrong.
  mutating func report(
    _ offset: Int, _ message: String, length: Int = 0, sequences: ClosedRange<UInt64>? = nil
  ) {
    guard findings.count < Limits.verifyFindings else { return }
    findings.append(
      VerifyFinding(
        file: fileName, offset: offset, length: length, sequences: sequences ?? range,
        message: message, remedy: VerifyRemedy.repair(path), isDamageToAcknowledged: true,
        segmentID: row.id))
  }

  /// Reads and checks the whole segment.
  mutating func run() throws(TidemarkError) {
    do {
      guard let file = try openFile() else {
        report(0, "a file of the log is missing")
        return
      }
      defer { file.close() }
      bytes = try file.length()
      try check(file)
      for page in file.unreadablePages { report(page, "the disk cannot read this page") }
    } catch let error as FileSystemError {
      guard error.isUnreadable else { throw TidemarkError(error, while: "verifying the log") }
      report(0, "the disk cannot read the file")
    } catch let error as TidemarkError {
      throw error
    } catch {
      throw TidemarkError(.inputOutput, "the log cannot be verified", cause: error)
    }
    findings.sort { $0.offset < $1.offset }
  }

  private func openFile() throws(FileSystemError) -> TolerantFile? {
    do {
      return TolerantFile(try fileSystem.open(path + "/" + fileName, .read))
    } catch {
      if error.number == ErrorNumber.noEntry { return nil }
      throw error
    }
  }

  private mutating func check(_ file: TolerantFile) throws {
    let header = try checkHeader(file)
    if let id = row.keyID {
      let sealer = try sealer(header, id)
      codecs = FrameCodecs(contexts: contexts, sealer: sealer, isOpaque: sealer == nil)
    }
    if let header, header.dictionary != nil {
      guard let withDictionary = try checkDictionary(file, header) else { return }
      codecs = withDictionary
    }
    if row.state == .active {
      try checkActive(file)
    } else {
      try checkSealed(
        file,
        firstFrame: header?.firstFrame ?? FormatConstants.segmentHeaderBytes)
    }
  }

  // MARK: Header

  /// Checks both pages of the header.
  /// - Returns: the header; nil when neither page is whole.
  private mutating func checkHeader(_ file: TolerantFile) throws -> SegmentHeader? {
    let size = FormatConstants.segmentHeaderPageBytes
    var best: SegmentHeader?
    for copy in 0..<2 {
      let page = try file.read(size, at: copy * size)
      do {
        let header = try SegmentHeader(decodingPage: page.rawSpan)
        guard header.storeID == storeID, header.segmentID == row.id, header.salt == row.salt,
          header.baseSequence == row.firstSequence, header.kind == row.kind,
          header.seal?.keyID == row.keyID, best == nil || best == header
        else {
          report(copy * size, "header of another segment", length: size)
          continue
        }
        best = header
      } catch {
        if error.isNewer {
          throw TidemarkError(
            .formatTooNew, "the log was written by a later version; use that or a newer one",
            file: fileName, offset: copy * size, cause: error)
        }
        report(copy * size, "\(error.reason), copy \(copy + 1) of 2", length: size)
      }
    }
    return best
  }

  /// The sealer that decrypts the segment; nil without the key, or when the header has not kept it.
  private mutating func sealer(
    _ header: SegmentHeader?, _ id: Encryption.KeyID
  ) throws(TidemarkError) -> BlockSealer? {
    guard !keys.isEmpty, let seal = header?.seal else { return nil }
    let key = try keys.key(id)
    do throws(FormatError) { return try seal.sealer(key: key, fileID: row.id) } catch {
      report(0, error.reason, length: FormatConstants.segmentHeaderBytes)
      return nil
    }
  }

  /// Checks both copies of the dictionary and the zeros around them.
  /// - Returns: nil when neither copy is whole: then nothing can be decoded.
  private mutating func checkDictionary(
    _ file: TolerantFile, _ header: SegmentHeader
  ) throws -> FrameCodecs? {
    guard let dictionary = header.dictionary else { return nil }
    var loaded: FrameCodecs?
    var end = FormatConstants.segmentHeaderBytes
    for (copy, offset) in dictionary.offsets.enumerated() {
      try checkZeros(file, end..<offset)
      let bytes = try file.read(dictionary.length, at: offset)
      end = offset + dictionary.length
      guard bytes.count == dictionary.length, XXH64.hash(bytes.rawSpan) == dictionary.checksum
      else {
        report(
          offset, "dictionary does not match its checksum, copy \(copy + 1) of 2",
          length: dictionary.length)
        continue
      }
      if loaded == nil, codecs.isOpaque { loaded = codecs }
      if loaded == nil,
        let decoded = try? SegmentReader.dictionary(bytes, codecs.sealer)
      {
        loaded = FrameCodecs(contexts: contexts, dictionary: decoded, sealer: codecs.sealer)
      }
    }
    try checkZeros(file, end..<header.firstFrame)
    return loaded
  }

  private mutating func checkZeros(_ file: TolerantFile, _ range: Range<Int>) throws {
    guard !range.isEmpty else { return }
    let bytes = try file.read(range.count, at: range.lowerBound)
    guard bytes.count < range.count || !bytes.rawSpan.isZero else { return }
    report(range.lowerBound, "bytes where nothing should stand", length: range.count)
  }

  // MARK: The segment that was open for appending

  /// A torn tail is no finding: nothing in it was acknowledged.
  private mutating func checkActive(_ file: TolerantFile) throws {
    let recovery = try TailRecovery(
      row: row, file: file, codecs: codecs, sameBoot: sameBoot)
    let codecs = codecs
    let scan = FrameScan(
      try WindowReader(file), salt: row.salt, codecs: codecs,
      from: FormatConstants.segmentHeaderBytes)
    var failure: FileSystemError?
    var looker = self
    let outcome = recovery.run { (fronts) throws(Never) in
      guard failure == nil else { return }
      for front in fronts {
        do throws(FileSystemError) {
          try looker.decode(front, scan, codecs)
        } catch { failure = error }
      }
    }
    findings = looker.findings
    attachments = looker.attachments
    if let failure { throw failure }
    let tail = try outcome.get()
    entries += tail.entryCount
    lastSequence = max(lastSequence, tail.lastSequence)
    guard case .damage(let damage) = tail.remainder else { return }
    report(
      damage.offset, "damage to acknowledged data: \(damage.reason.reason)",
      length: (damage.nextFrame ?? damage.offset) - damage.offset,
      sequences: damage.firstSequence...max(damage.firstSequence, damage.lastSequence))
  }

  /// Decompresses the blocks of a frame whose checksums are right already.
  private mutating func decode(
    _ front: DecodedFront, _ scan: FrameScan, _ codecs: FrameCodecs
  ) throws(FileSystemError) {
    for entry in front.entries {
      guard let attributes = try? front.attributes(of: entry) else { continue }
      check(attributes, of: entry, in: front)
    }
    var reasons: [(offset: Int, reason: FormatError)] = []
    _ = try scan.checkBlocks(of: front, codecs: codecs) { _, offset, reason in
      reasons.append((offset, reason))
    }
    for (offset, reason) in reasons {
      report(offset, reason.reason, sequences: front.sequences)
    }
  }
}
