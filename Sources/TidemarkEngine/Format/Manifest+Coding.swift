// Reads and writes the bytes of a copy of MANIFEST: see the table of its header at ``Manifest``.
extension Manifest {
  private static let headerBytes = 40
  private static let minimumBytes = 16 << 10

  /// The length of a file whose header and fields take `length` bytes.
  package static func storedBytes(_ length: Int) -> Int {
    max(minimumBytes, (length + 4095) & ~4095)
  }

  /// The file's bytes: header, fields, zeros.
  /// - Parameters:
  ///   - sparing: how many more bytes of fields must fit before the zeros are used up.
  ///   - atLeast: the least length of the file.
  package func encoded(sparing: Int = 0, atLeast: Int = 0) -> [UInt8] {
    var writer = ByteWriter(capacity: 512 + segments.count * 64)
    writer.u64(FormatConstants.manifestMagic)
    writer.u16(FormatConstants.major)
    writer.u16(FormatConstants.minor)
    writer.u32(0)
    writer.u32(readOnlyFeatures)
    writer.u32(isEncrypted ? FormatConstants.encryptionFeature : 0)
    writer.u64(0)
    writer.u64(0)
    writer.u64(generation)
    writer.raw(storeID)
    writer.raw(replicaID)
    writer.raw(bootID)
    writer.u8(isClosedCleanly ? 1 : 0)
    writer.u64(hashSeed)
    Self.encode(optional: retention.ageSeconds, into: &writer)
    Self.encode(optional: retention.bytes, into: &writer)
    Self.encode(optional: retention.versionsPerKey.map(UInt64.init), into: &writer)
    for number in [
      historyFrom, droppedThrough, evictedThrough, nextSegmentID, nextRunID, latestCommitTime,
      lastSequence,
    ] { writer.varint(number) }
    writer.time(historyTime)
    writer.varint(epochs.count)
    for epoch in epochs {
      writer.u64(epoch.epoch)
      writer.varint(epoch.firstSequence)
    }
    writer.varint(segments.count)
    for segment in segments { segment.encode(into: &writer) }
    writer.varint(runs.count)
    for run in runs {
      writer.varint(run.id)
      writer.varint(run.sequence)
      writer.varint(run.length)
    }
    writer.varint(damage.count)
    for record in damage { record.encode(into: &writer) }
    if isEncrypted { encodeKeys(into: &writer) }
    writer.patch(u64: UInt64(writer.count), at: 24)
    // Zeros up to a multiple of 4 KiB: most updates then need no new space on a full disk.
    writer.zeros(max(Self.storedBytes(writer.count + sparing), atLeast) - writer.count)
    // The checksum covers the whole file, its own field still zero.
    writer.patch(u64: XXH64.hash(writer.bytes.rawSpan), at: 32)
    return writer.bytes
  }

  /// Decodes a file; bytes other than zero behind the fields are an error.
  package init(decoding bytes: RawSpan) throws(FormatError) {
    guard bytes.byteCount >= Self.headerBytes, try bytes.u64(at: 0) == FormatConstants.manifestMagic
    else { throw FormatError("not a manifest") }
    let length = try bytes.u64(at: 24)
    guard length >= UInt64(Self.headerBytes), length <= UInt64(bytes.byteCount),
      try bytes.slice(Int(length), bytes.byteCount - Int(length)).isZero
    else { throw FormatError("manifest has another length than it says") }
    var copy = ByteWriter()
    copy.raw(bytes)
    copy.patch(u64: 0, at: 32)
    let isIntact = XXH64.hash(copy.bytes.rawSpan) == (try bytes.u64(at: 32))
    guard isIntact else { throw FormatError("manifest does not match its checksum") }
    // After the checksum: a damaged copy must not pass for one of another version.
    let major = try bytes.u16(at: 8)
    guard major >= FormatConstants.major else {
      throw FormatError("written in version \(major) of the format", isOlder: true)
    }
    guard major == FormatConstants.major,
      try bytes.u32(at: 20) & ~FormatConstants.knownIncompatibleFeatures == 0
    else { throw FormatError("written by a later version of the format", isNewer: true) }
    var reader = ByteReader(try bytes.slice(0, Int(length)), at: Self.headerBytes)
    let generation = try reader.u64()
    let storeID = try reader.array(16)
    let replicaID = try reader.array(16)
    let bootID = try reader.array(16)
    let clean = try reader.u8()
    guard clean <= 1 else { throw FormatError("unknown state of the store", isNewer: true) }
    self.init(storeID: storeID, replicaID: replicaID, bootID: bootID, hashSeed: try reader.u64())
    self.generation = generation
    readOnlyFeatures = try bytes.u32(at: 16)
    isClosedCleanly = clean == 1
    retention.ageSeconds = try Self.decodeOptional(&reader)
    retention.bytes = try Self.decodeOptional(&reader)
    if let versions = try Self.decodeOptional(&reader) {
      guard let versions = UInt32(exactly: versions) else {
        throw FormatError("retention out of bounds")
      }
      retention.versionsPerKey = versions
    }
    historyFrom = try reader.varint()
    droppedThrough = try reader.varint()
    evictedThrough = try reader.varint()
    nextSegmentID = try reader.varint()
    nextRunID = try reader.varint()
    latestCommitTime = try reader.varint()
    lastSequence = try reader.varint()
    historyTime = try reader.time()
    try decodeLists(&reader)
    if try bytes.u32(at: 20) & FormatConstants.encryptionFeature != 0 { try decodeKeys(&reader) }
    guard reader.remaining == 0 else { throw FormatError("bytes behind the manifest's fields") }
    try checkBounds()
    try checkOrder()
  }

  private mutating func decodeLists(_ reader: inout ByteReader) throws(FormatError) {
    for _ in 0..<(try reader.varint(atMost: Limits.epochs)) {
      epochs.append(Epoch(epoch: try reader.u64(), firstSequence: try reader.varint()))
    }
    for _ in 0..<(try reader.varint(atMost: Limits.segments)) {
      segments.append(try Segment(decoding: &reader))
    }
    for _ in 0..<(try reader.varint(atMost: Limits.manifestRuns)) {
      runs.append(
        SortedRun(
          id: try reader.varint(), sequence: try reader.varint(),
          length: try reader.varint(atMost: 1 << 40)))
    }
    for _ in 0..<(try reader.varint(atMost: Limits.damageRecords)) {
      damage.append(try Damage(decoding: &reader))
    }
  }

  /// The list that is too long for ``init(decoding:)``; nil when all fit. Whoever adds epochs or
  /// damage keeps to the limits of these lists.
  package var excess: String? {
    if segments.count > Limits.segments { return "more than \(Limits.segments) segments" }
    if runs.count > Limits.manifestRuns { return "more than \(Limits.manifestRuns) sorted runs" }
    if keyIDs.count > Limits.keys { return "files of more than \(Limits.keys) keys" }
    return nil
  }

  /// Checks that ids and sequences, which the engine counts up, leave room for more.
  private func checkBounds() throws(FormatError) {
    let ids = [generation, nextSegmentID, nextRunID] + segments.map(\.id) + runs.map(\.id)
    let sequences =
      [historyFrom, droppedThrough, evictedThrough, lastSequence] + epochs.map(\.firstSequence)
      + runs.map(\.sequence) + damage.flatMap { [$0.firstSequence, $0.lastSequence] }
    guard ids.allSatisfy({ $0 < 1 << 62 }), sequences.allSatisfy({ $0 < 1 << 48 }) else {
      throw FormatError("number out of bounds in the manifest")
    }
  }

  /// Checks that no segments overlap and that only the last is active. Gaps are allowed: compaction
  /// drops whole segments. Sequences begin at 1, so the first segment must not begin at 0.
  func checkOrder() throws(FormatError) {
    var next: UInt64 = 0
    for (i, segment) in segments.enumerated() {
      guard segment.firstSequence > next || (i > 0 && segment.firstSequence == next),
        segment.firstSequence < 1 << 48, segment.state == .sealed || i == segments.count - 1
      else { throw FormatError("segments out of order in the manifest") }
      if segment.state == .sealed { next = segment.lastSequence + 1 }
    }
  }

  private static func encode(optional: UInt64?, into writer: inout ByteWriter) {
    writer.u8(optional == nil ? 0 : 1)
    if let optional { writer.varint(optional) }
  }

  private static func decodeOptional(_ reader: inout ByteReader) throws(FormatError) -> UInt64? {
    try reader.isPresent() ? try reader.varint() : nil
  }
}

extension Manifest.Segment {
  fileprivate func encode(into writer: inout ByteWriter) {
    writer.varint(id)
    writer.u8(state.rawValue)
    writer.u8(kind.rawValue)
    writer.u32(salt)
    writer.varint(firstSequence)
    writer.varint(lastSequence)
    writer.varint(length)
    writer.varint(entryCount)
    writer.varint(rawBytes)
    writer.u64(chain)
    writer.time(latestTime)
  }

  fileprivate init(decoding reader: inout ByteReader) throws(FormatError) {
    let id = try reader.varint()
    guard let state = State(rawValue: try reader.u8()),
      let kind = SegmentHeader.Kind(rawValue: try reader.u8())
    else { throw FormatError("unknown kind of segment in the manifest", isNewer: true) }
    let salt = try reader.u32()
    self.init(id: id, state: state, kind: kind, salt: salt, firstSequence: try reader.varint())
    lastSequence = try reader.varint()
    length = try reader.varint(atMost: 1 << 32)
    entryCount = try reader.varint(atMost: 1 << 32)
    // The sum over all segments of a store stays below 2^62.
    rawBytes = try reader.varint(atMost: 1 << 46)
    chain = try reader.u64()
    latestTime = try reader.time()
    // A sealed segment may be empty; of an active one the last sequence is not known yet.
    guard lastSequence < 1 << 48, lastSequence + 1 >= firstSequence || state == .active else {
      throw FormatError("segment out of bounds in the manifest")
    }
  }
}

extension Manifest.Damage {
  fileprivate func encode(into writer: inout ByteWriter) {
    writer.u8(state.rawValue)
    writer.varint(segmentID)
    writer.varint(offset)
    writer.varint(length)
    writer.varint(firstSequence)
    writer.varint(lastSequence)
    writer.blob(reason)
  }

  fileprivate init(decoding reader: inout ByteReader) throws(FormatError) {
    guard let state = State(rawValue: try reader.u8()) else {
      throw FormatError("unknown state of damage in the manifest", isNewer: true)
    }
    self.init(
      state: state, segmentID: try reader.varint(), offset: try reader.varint(atMost: 1 << 40),
      length: try reader.varint(atMost: 1 << 40), firstSequence: try reader.varint(),
      lastSequence: try reader.varint(), reason: try reader.blob(atMost: 1024))
  }
}

extension ByteWriter {
  /// A time that may be missing: 1, zigzag seconds, varint nanoseconds; or 0 alone.
  fileprivate mutating func time(_ time: Timestamp?) {
    u8(time == nil ? 0 : 1)
    guard let time else { return }
    zigzag(time.seconds)
    varint(UInt64(time.nanoseconds))
  }
}

extension ByteReader {
  fileprivate mutating func time() throws(FormatError) -> Timestamp? {
    guard try isPresent() else { return nil }
    let seconds = try zigzag()
    return Timestamp(seconds: seconds, nanoseconds: UInt32(try varint(atMost: 999_999_999)))
  }

  /// The byte that says whether a field follows.
  fileprivate mutating func isPresent() throws(FormatError) -> Bool {
    let mark = try u8()
    guard mark <= 1 else { throw FormatError("unknown mark in the manifest", isNewer: true) }
    return mark == 1
  }
}
