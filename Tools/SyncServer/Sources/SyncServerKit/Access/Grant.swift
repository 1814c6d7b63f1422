internal import Tidemark
internal import TidemarkSyncServer

/// The rights of a token.
struct Grant: Sendable, Hashable {
  /// The databases that it is for; nil for all.
  var databases: Set<String>?
  /// The access to them.
  var access: SyncAccess

  static let everything = Grant(databases: ["*"], labels: nil, prefixes: nil, canPush: true)

  /// The access allowed in a database.
  /// - Returns: nil for none.
  func access(to name: DatabaseName) -> SyncAccess? {
    guard let databases else { return access }
    return databases.contains(name.description) ? access : nil
  }

  /// A grant from the parts that a token has.
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
  /// Identifies the caller for rate limits; not for logs.
  var id: String
  var grant: Grant
  /// What its JSON Web Token says of it: `sub`, `jti`, and the only replica that may use it.
  var subject: String?
  var tokenID: String?
  var replica: String?
  /// For how long its token is still valid; nil for one that does not expire.
  var validFor: Duration?
  /// The authenticator's `generation` when the caller's token was verified; nil without a token.
  var generation: Int?
}
