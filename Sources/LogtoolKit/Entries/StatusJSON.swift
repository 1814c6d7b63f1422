internal import Tidemark
internal import TidemarkEngine

/// A store's figures as JSON.
enum StatusJSON {
  static func value(
    _ status: Store.Status, _ held: [HeldHistory], _ space: StoreSpace
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
          .init("file", .string(status.durable.file)),
          .init("offset", .integer(status.durable.offset)),
          .init("sequence", .unsigned(status.durable.sequence)),
        ])),
      .init("segments", .array(status.segments.map(segment))),
      .init("index_runs", .array(status.runs.map(run))),
      .init("store_id", .string(status.storeID.hexadecimal)),
      .init("replica_id", .string(status.replicaID.hexadecimal)),
      .init("epoch", .optional(status.epoch == 0 ? nil : String(status.epoch, radix: 16))),
      .init("history_from", .unsigned(status.historyFrom)),
      .init("dropped_through", .unsigned(status.droppedThrough)),
      .init("held", HeldText.json(held)),
      .init("retention", retention(status.retention)),
      .init("closed_cleanly", .bool(status.isClosedCleanly)),
      .init("damage", .array(status.damage.map(damage))),
      .init("encryption", encryption(status.encryption)),
      .init("format", .string("\(FormatConstants.major).\(FormatConstants.minor)")),
    ])
  }

  private static func bytes(_ bytes: Store.Status.Bytes) -> JSONValue {
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

  private static func encryption(_ encryption: Store.Status.Encrypted?) -> JSONValue {
    guard let encryption else { return .null }
    return .object([
      .init("keys", .array(encryption.keys.map { .string($0.description) })),
      .init("files_to_rewrite", .integer(encryption.filesToRewrite)),
    ])
  }

  private static func segment(_ segment: Store.Status.Segment) -> JSONValue {
    .object([
      .init("file", .string(segment.file)),
      .init("first_sequence", .unsigned(segment.sequences.lowerBound)),
      .init("last_sequence", .unsigned(segment.sequences.upperBound - 1)),
      .init("bytes", .integer(segment.bytes)),
      .init("superseded", .integer(segment.supersededBytes)),
      .init("sealed", .bool(segment.isSealed)),
      .init("compacted", .bool(segment.isCompacted)),
    ])
  }

  private static func run(_ run: Store.Status.SortedRun) -> JSONValue {
    .object([
      .init("file", .string(run.file)), .init("sequence", .unsigned(run.sequence)),
      .init("bytes", .integer(run.bytes)),
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

  private static func damage(_ damage: Store.Status.Damage) -> JSONValue {
    .object([
      .init("file", .string(damage.file)), .init("offset", .integer(damage.offset)),
      .init("first_sequence", .unsigned(damage.sequences.lowerBound)),
      .init("last_sequence", .unsigned(damage.sequences.upperBound)),
      .init("reason", .string(damage.reason)), .init("accepted", .bool(damage.isAccepted)),
    ])
  }
}
