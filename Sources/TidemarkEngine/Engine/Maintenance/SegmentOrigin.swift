/// The identity of a file of the log, found out from whatever is left: its header, MANIFEST, its
/// name and its first frame.
struct SegmentOrigin {
  var id: UInt64
  var firstSequence: UInt64
  var salt: UInt32
  var kind: SegmentHeader.Kind
  var storeID: [UInt8]?
  var firstFrame = FormatConstants.segmentHeaderBytes
  var codecs: FrameCodecs
  /// Whether its header says so.
  var isEncrypted = false

  /// - Returns: nil when nothing tells what the file is.
  /// - Throws: `formatTooNew` when a later version wrote it.
  init?(
    _ file: TolerantFile, name: String, row: Manifest.Segment?, contexts: ZstdContexts,
    keys: KeyRing
  ) throws {
    // Without a header nothing of an encrypted segment can be decrypted.
    codecs = FrameCodecs(contexts: contexts, isOpaque: row?.keyID != nil)
    let header: SegmentHeader?
    do throws(LogReadError) { header = try SegmentReader.header(file) } catch {
      if case .system(let error) = error { throw error }
      if case .format(let reason) = error, reason.isNewer {
        throw TidemarkError(
          .formatTooNew, "the log was written by a later version; use that or a newer one",
          file: name, offset: 0, cause: reason)
      }
      header = nil
    }
    if let header, row == nil || (row?.id == header.segmentID && row?.salt == header.salt) {
      id = header.segmentID
      firstSequence = header.baseSequence
      salt = header.salt
      kind = header.kind
      storeID = header.storeID
      firstFrame = header.firstFrame
      isEncrypted = header.seal != nil
      codecs = try Self.codecs(file, header, contexts, keys)
      return
    }
    if let row {
      id = row.id
      firstSequence = row.firstSequence
      salt = row.salt
      kind = row.kind
    } else {
      let start = FormatConstants.segmentHeaderBytes
      let bytes = try file.read(FormatConstants.frameHeaderBytes, at: start)
      // A frame begins with a fixed word that is veiled by the salt, which its checksum proves.
      guard let parsed = StoreLayout.parse(segmentName: name),
        let word = try? bytes.rawSpan.u32(at: 0),
        let first = try? FrameHeader(
          decoding: bytes.rawSpan, salt: word ^ FormatConstants.frameSync, offset: start)
      else { return nil }
      id = parsed.id
      firstSequence = parsed.firstSequence
      salt = word ^ FormatConstants.frameSync
      kind = first.hasExplicitSequences ? .compacted : .appended
    }
    guard kind == .compacted, !codecs.isOpaque,
      let dictionary = try LostDictionary(file, salt: salt, contexts: contexts)
    else { return }
    firstFrame = dictionary.firstFrame
    codecs = dictionary.codecs
  }

  /// The decoder of a segment whose header is whole.
  private static func codecs(
    _ file: TolerantFile, _ header: SegmentHeader, _ contexts: ZstdContexts, _ keys: KeyRing
  ) throws(TidemarkError) -> FrameCodecs {
    var sealer: BlockSealer?
    if let seal = header.seal {
      let key = try keys.key(seal.keyID)
      sealer = try? seal.sealer(key: key, fileID: header.segmentID)
    }
    let plain = FrameCodecs(
      contexts: contexts, sealer: sealer, isOpaque: header.seal != nil && sealer == nil)
    guard header.dictionary != nil, !plain.isOpaque else { return plain }
    let found = try? SegmentReader.codecs(
      file, header: header, contexts: contexts, sealer: sealer)
    return found ?? plain
  }
}

/// Finds the dictionary of a segment whose header is lost: its two copies must be equal, and
/// the first frame stands right behind the second.
struct LostDictionary {
  var codecs: FrameCodecs
  var firstFrame: Int

  init?(_ file: TolerantFile, salt: UInt32, contexts: ZstdContexts) throws {
    let start = FormatConstants.segmentHeaderBytes
    let page = FormatConstants.segmentHeaderPageBytes
    let plain = FrameCodecs(contexts: contexts)
    let walker = FrameWalker(
      try WindowReader(file), salt: salt, codecs: plain, from: start,
      end: min(try file.length(), start + 2 * (Limits.dictionaryBytes + page) + page))
    guard let found = try walker.search(from: start, sequence: 1), found.offset > start else {
      return nil
    }
    firstFrame = found.offset
    // A dictionary never ends in a zero byte, so the zeros behind it tell its length.
    let bytes = try file.read(found.offset - start, at: start)
    guard let end = bytes.lastIndex(where: { $0 != 0 }).map({ $0 + 1 }) else { return nil }
    for second in stride(from: page, to: end, by: page) {
      let count = end - second
      guard count <= second, second - count < page, bytes.count - end < Self.alignment,
        bytes[second..<end].elementsEqual(bytes[..<count]),
        let dictionary = try? ZstdDictionary(Array(bytes[..<count]))
      else { continue }
      codecs = FrameCodecs(contexts: contexts, dictionary: dictionary)
      return
    }
    return nil
  }

  private static let alignment = FormatConstants.frameAlignment
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
