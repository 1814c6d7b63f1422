internal import Tidemark
internal import TidemarkEngine

/// A store's figures as JSON.
enum StatusJSON {
  static func value(
    _ status: EngineStatus, _ held: [HeldHistory], _ space: StoreSpace
  ) -> JSONValue {
    .object([
      .init("keys", .integer(status.keys)),
      .init("sequence", .unsigned(status.sequence)),
      .init("bytes", bytes(status.bytes)),
      .init(
        "attachments",
        .object([
          .init("count", .integer(space.attachments.count)),
          .init("bytes", .integer(space.attachments.bytes)),
        ])),
      .init(
        "cached",
        .object([
          .init("keys", .integer(space.cachedEntries)), .init("bytes", .integer(space.cachedBytes)),
        ])),
      .init("indexes", space.indexes.map { .array($0.map(index)) } ?? .null),
      .init(
        "durable",
        .object([
          .init("file", .string(status.durableFile)),
          .init("offset", .integer(status.durableOffset)),
          .init("sequence", .unsigned(status.durableSequence)),
        ])),
      .init("segments", .array(status.segments.map(segment))),
      .init("images", .array(status.images.map(image))),
      .init("store_id", .string(status.storeID.hexadecimal)),
      .init("replica_id", .string(status.replicaID.hexadecimal)),
      .init("epoch", .optional(status.epochs.last.map { String($0.epoch, radix: 16) })),
      .init("history_from", .unsigned(status.historyFrom)),
      .init("dropped_through", .unsigned(status.droppedThrough)),
      .init("held", HeldText.json(held)),
      .init("retention", retention(status.retention)),
      .init("closed_cleanly", .bool(status.isClosedCleanly)),
      .init("damage", .array(status.damage.map { damage($0, status) })),
      .init("encryption", encryption(status)),
      .init("format", .string("\(FormatConstants.major).\(FormatConstants.minor)")),
    ])
  }

  private static func bytes(_ bytes: EngineStatus.Bytes) -> JSONValue {
    .object([
      .init("log", .integer(bytes.log)), .init("live", .integer(bytes.live)),
      .init("history", .integer(bytes.history)), .init("dead", .integer(bytes.dead)),
      .init("pinned", .integer(bytes.pinned)), .init("index", .integer(bytes.index)),
      .init("ballast", .integer(bytes.ballast)),
    ])
  }

  private static func index(_ index: IndexUsage) -> JSONValue {
    .object([
      .init("collection", .string(index.collection)), .init("name", .string(index.index)),
      .init("rows", .integer(index.rows)), .init("bytes", .integer(index.bytes)),
    ])
  }

  private static func encryption(_ status: EngineStatus) -> JSONValue {
    guard !status.keyIDs.isEmpty else { return .null }
    return .object([
      .init("keys", .array(status.keyIDs.map { .string($0.description) })),
      .init("files_to_rewrite", .integer(status.filesToRewrite)),
    ])
  }

  private static func segment(_ segment: EngineStatus.Segment) -> JSONValue {
    .object([
      .init("file", .string(segment.file)),
      .init("first_sequence", .unsigned(segment.firstSequence)),
      .init("last_sequence", .unsigned(segment.lastSequence)),
      .init("bytes", .integer(segment.length)),
      .init("superseded", .integer(segment.supersededBytes)),
      .init("sealed", .bool(segment.isSealed)),
      .init("compacted", .bool(segment.isCompacted)),
    ])
  }

  private static func image(_ image: Manifest.Image) -> JSONValue {
    .object([
      .init("file", .string(StoreLayout.indexDirectory + "/" + image.fileName)),
      .init("sequence", .unsigned(image.sequence)), .init("bytes", .integer(image.length)),
    ])
  }

  private static func retention(_ retention: Retention) -> JSONValue {
    .object([
      .init("age_seconds", retention.ageSeconds.map { .unsigned($0) } ?? .null),
      .init("bytes", retention.bytes.map { .unsigned($0) } ?? .null),
      .init(
        "versions_per_key", retention.versionsPerKey.map { .integer(Int($0)) } ?? .null),
    ])
  }

  private static func damage(_ damage: Manifest.Damage, _ status: EngineStatus) -> JSONValue {
    let file = status.segments.first { $0.id == damage.segmentID }?.file
    return .object([
      .init("file", .optional(file)), .init("offset", .integer(damage.offset)),
      .init("first_sequence", .unsigned(damage.firstSequence)),
      .init("last_sequence", .unsigned(damage.lastSequence)),
      .init("reason", .string(String(decoding: damage.reason, as: UTF8.self))),
      .init("accepted", .bool(damage.state == .accepted)),
    ])
  }
}
