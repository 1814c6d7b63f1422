internal import Tidemark
internal import TidemarkSyncServer

/// The rights of a token.
struct Grant: Sendable, Hashable {
  /// Which databases; nil for all.
  var databases: Set<String>?
  /// The access to them.
  var access: SyncAccess

  static let everything = Grant(databases: ["*"], labels: nil, prefixes: nil, canPush: true)

  /// The access allowed in a database.
  /// - Returns: nil for nothing at all.
  func access(to name: DatabaseName) -> SyncAccess? {
    guard let databases else { return access }
    return databases.contains(name.description) ? access : nil
  }

  /// A grant out of its parts as tokens have them.
  /// - Parameters:
  ///   - databases: names, among them perhaps `*` for all.
  ///   - labels: nil where there is no restriction to labels.
  ///   - prefixes: nil where there is no restriction to prefixes of keys.
  init(
    databases: [String], labels: [String]?, prefixes: [String]?, canPush: Bool
  ) {
    self.databases = databases.contains("*") ? nil : Set(databases)
    var scope: SyncScope?
    if labels != nil || prefixes != nil {
      scope = SyncScope(
        labels: (labels ?? []).map { EntryLabel($0) },
        keyPrefixes: prefixes ?? [])
    }
    access = SyncAccess(to: scope, canPush: canPush)
  }
}

/// The maker of a request, and what it may do.
struct Caller: Sendable {
  /// Tells callers apart whose requests are counted; not for logs.
  var id: String
  var grant: Grant
  /// For how long its token is valid still, if that has an end.
  var validFor: Duration?
  /// The authenticator's `generation` when the caller's token was verified; nil without a token.
  var generation: Int?
}
