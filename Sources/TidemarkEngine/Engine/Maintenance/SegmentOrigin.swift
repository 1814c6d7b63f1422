/// The identity of a segment file and what decodes it, worked out from whatever is left: header,
/// MANIFEST's row, footer, the file's name and the first frame. A frame is a block of entries.
struct SegmentOrigin: Sendable {
  /// Relative to the store.
  let name: String
  /// The row of MANIFEST that lists it; nil when none does.
  let row: Manifest.Segment?
  let id: UInt64
  let firstSequence: UInt64
  let salt: UInt32
  let kind: SegmentHeader.Kind
  /// The store that its header names; nil when no header is whole.
  let storeID: [UInt8]?
  private(set) var firstFrame = FormatConstants.segmentHeaderBytes
  private(set) var codecs: FrameCodecs
  /// Whether the header names a zstd dictionary of which no copy is whole: no value can be decoded.
  private(set) var lacksDictionary = false
  private(set) var footer: SegmentFooter?
  /// The length of the file; and the one that it was sealed with, or `length` if that is unknown.
  private(set) var length = 0
  private(set) var sealedLength = 0

  /// A segment that MANIFEST lists and of which there is no file.
  init(missing row: Manifest.Segment, contexts: ZstdContexts) {
    name = StoreLayout.logDirectory + "/" + row.fileName
    self.row = row
    (id, firstSequence, salt, kind) = (row.id, row.firstSequence, row.salt, row.kind)
    storeID = nil
    codecs = FrameCodecs(contexts: contexts)
  }

  /// - Parameters:
  ///   - store: for a verification, the store that the header must name. Nil for a repair: any
  ///     header of that segment serves, and without one a dictionary is searched.
  ///   - keys: the user's; nil for none, and then an encrypted segment stays opaque.
  ///   - note: called with what is damaged before the first frame: offset, fault, and length.
  /// - Returns: nil when nothing tells what the file is.
  /// - Throws: `formatTooNew` when a later version wrote it.
  init?(
    _ file: TolerantFile, name: String, row: Manifest.Segment?, of store: [UInt8]?,
    contexts: ZstdContexts, keys: KeyRing?, _ note: (Int, String, Int) -> Void
  ) throws {
    self.name = name
    self.row = row
    let header = try Self.header(file, name, row, of: store, note)
    storeID = header?.storeID
    // Without a header nothing of an encrypted segment can be decrypted.
    codecs = FrameCodecs(contexts: contexts, isOpaque: header == nil && row?.keyID != nil)
    if let header {
      (id, firstSequence) = (header.segmentID, header.baseSequence)
      (salt, kind, firstFrame) = (header.salt, header.kind, header.firstFrame)
    } else if let row {
      (id, firstSequence, salt, kind) = (row.id, row.firstSequence, row.salt, row.kind)
    } else {
      let start = FormatConstants.segmentHeaderBytes
      let bytes = try file.read(FormatConstants.frameHeaderBytes, at: start)
      // A frame begins with a fixed word XOR the segment's salt, which its checksum proves.
      guard let parsed = StoreLayout.parse(segmentName: name),
        let word = try? bytes.rawSpan.u32(at: 0),
        let first = try? FrameHeader(
          decoding: bytes.rawSpan, salt: word ^ FormatConstants.frameSync, offset: start)
      else { return nil }
      (id, firstSequence) = parsed
      salt = word ^ FormatConstants.frameSync
      kind = first.hasExplicitSequences ? .compacted : .appended
    }
    length = try file.length()
    sealedLength = row?.state == .sealed ? row?.length ?? length : length
    let footer = try? SegmentReader.footer(file, length: sealedLength, salt: salt, isCut: true)
    // `isCut`: the file may have lost its end since, so its length is not compared. Damage may have
    // put another segment's footer there; its id tells.
    if footer?.segmentID == id { self.footer = footer }
    if let header {
      try readCodecs(file, header, contexts, keys, note)
    } else if store == nil, kind == .compacted, !codecs.isOpaque {
      try findDictionary(file, contexts)
    }
  }

  /// Where the frames end: at the locator (the table behind them) or, without a footer, at the end.
  var framesEnd: Int { min(length, footer?.locatorOffset ?? sealedLength) }

  /// The sequences that the segment stands for in the log, whether or not it holds them; nil where
  /// neither MANIFEST nor a footer says that it was sealed.
  var coverage: ClosedRange<UInt64>? {
    if let row, row.state == .sealed {
      return row.firstSequence...max(row.firstSequence, row.lastSequence)
    }
    guard let footer, footer.lastSequence >= footer.firstSequence else { return nil }
    return footer.firstSequence...footer.lastSequence
  }

  /// Checks both pages of the header.
  /// - Returns: nil when neither is whole.
  private static func header(
    _ file: TolerantFile, _ name: String, _ row: Manifest.Segment?, of store: [UInt8]?,
    _ note: (Int, String, Int) -> Void
  ) throws -> SegmentHeader? {
    let size = FormatConstants.segmentHeaderPageBytes
    var best: SegmentHeader?
    for copy in 0..<2 {
      let page = try file.read(size, at: copy * size)
      do throws(FormatError) {
        let header = try SegmentHeader(decodingPage: page.rawSpan)
        let isOwn =
          (row == nil || row?.id == header.segmentID && row?.salt == header.salt)
          && (store == nil
            || store == header.storeID && row?.firstSequence == header.baseSequence
              && row?.kind == header.kind && row?.keyID == header.seal?.keyID)
        // Of two headers that differ the first counts, and the other is reported.
        if isOwn, best == nil || best == header {
          best = header
        } else {
          note(copy * size, "header of another segment", size)
        }
      } catch {
        if error.isNewer {
          throw TidemarkError(
            .formatTooNew, "the log was written by a later version; use that or a newer one",
            file: name, offset: copy * size, cause: error)
        }
        note(copy * size, "\(error.reason), copy \(copy + 1) of 2", size)
      }
    }
    return best
  }

  /// Finds the decoder by a whole header; checks both copies of its dictionary, and zeros around.
  private mutating func readCodecs(
    _ file: TolerantFile, _ header: SegmentHeader, _ contexts: ZstdContexts, _ keys: KeyRing?,
    _ note: (Int, String, Int) -> Void
  ) throws {
    var sealer: BlockSealer?
    if let seal = header.seal, let key = try keys?.key(seal.keyID) {
      do { sealer = try seal.sealer(key: key, fileID: id) } catch {
        note(0, error.reason, FormatConstants.segmentHeaderBytes)
      }
    }
    codecs = FrameCodecs(
      contexts: contexts, sealer: sealer, isOpaque: header.seal != nil && sealer == nil)
    guard let dictionary = header.dictionary else { return }
    lacksDictionary = true
    func checkZeros(_ range: Range<Int>) throws {
      guard !range.isEmpty else { return }
      let bytes = try file.read(range.count, at: range.lowerBound)
      if bytes.count < range.count || !bytes.rawSpan.isZero {
        note(range.lowerBound, "bytes where nothing should stand", range.count)
      }
    }
    var end = FormatConstants.segmentHeaderBytes
    for (copy, offset) in dictionary.offsets.enumerated() {
      try checkZeros(end..<offset)
      let bytes = try file.read(dictionary.length, at: offset)
      end = offset + dictionary.length
      guard bytes.count == dictionary.length, XXH64.hash(bytes.rawSpan) == dictionary.checksum
      else {
        note(
          offset, "dictionary does not match its checksum, copy \(copy + 1) of 2",
          dictionary.length)
        continue
      }
      if codecs.isOpaque {
        lacksDictionary = false
      } else if lacksDictionary, let loaded = try? SegmentReader.dictionary(bytes, sealer) {
        codecs = FrameCodecs(contexts: contexts, dictionary: loaded, sealer: sealer)
        lacksDictionary = false
      }
    }
    try checkZeros(end..<header.firstFrame)
  }

  /// Finds the dictionary of a segment whose header is lost: two equal copies begin at pages behind
  /// the header, and the first frame stands right behind the second.
  private mutating func findDictionary(_ file: TolerantFile, _ contexts: ZstdContexts) throws {
    let start = FormatConstants.segmentHeaderBytes
    let page = FormatConstants.segmentHeaderPageBytes
    let walker = FrameWalker(
      try WindowReader(file), salt: salt, codecs: codecs, from: start,
      end: min(length, start + 2 * (Limits.dictionaryBytes + page) + page))
    guard let found = try walker.search(from: start, sequence: 1), found.offset > start else {
      return
    }
    // A dictionary never ends in a zero byte, so the zeros behind it tell its length.
    let bytes = try file.read(found.offset - start, at: start)
    guard let end = bytes.lastIndex(where: { $0 != 0 }).map({ $0 + 1 }) else { return }
    for second in stride(from: page, to: end, by: page) {
      let count = end - second
      guard count <= second, second - count < page,
        bytes.count - end < FormatConstants.frameAlignment,
        bytes[second..<end].elementsEqual(bytes[..<count]),
        let dictionary = try? ZstdDictionary(Array(bytes[..<count]))
      else { continue }
      codecs = FrameCodecs(contexts: contexts, dictionary: dictionary)
      firstFrame = found.offset
      return
    }
  }
}

extension StoreLayout {
  /// The numbers in a segment's file name.
  static func parse(segmentName name: String) -> (id: UInt64, firstSequence: UInt64)? {
    let file = name.split(separator: "/").last ?? ""
    let parts = file.split(separator: ".")
    guard parts.count == 2, parts[1] == "seg" else { return nil }
    let numbers = parts[0].split(separator: "-")
    guard numbers.count == 2, let first = UInt64(numbers[0]), first > 0, first < 1 << 48,
      let id = UInt64(numbers[1], radix: 16), id < 1 << 62
    else { return nil }
    return (id, first)
  }
}
