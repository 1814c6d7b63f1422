#if canImport(Darwin)
  public import Foundation
#else
  public import FoundationEssentials
#endif
public import Tidemark

extension Store {
  /// Opens the store in the directory of a file URL.
  /// - Parameters:
  ///   - url: the URL of the directory, by convention `NAME.tidemark`.
  ///   - configuration: the settings of the store; the defaults suit an app.
  /// - Throws: `invalidArgument` for a URL that is not a file's; else the errors of opening by a
  ///   path.
  public static func open(
    at url: URL, configuration: Configuration = Configuration()
  ) async throws(TidemarkError) -> Store {
    try await open(at: path(of: url), configuration: configuration.countingPurgeableSpace)
  }

  /// Opens the store in the directory of a file URL; blocks the calling thread.
  public static func openBlocking(
    at url: URL, configuration: Configuration = Configuration()
  ) throws(TidemarkError) -> Store {
    try openBlocking(at: path(of: url), configuration: configuration.countingPurgeableSpace)
  }

  /// Copies the store to the directory of a file URL while the store is being written.
  /// - Parameter url: where nothing is yet, or an empty directory.
  /// - Throws: what ``Store/backup(to:)-swift.method`` throws.
  public func backup(to url: URL) async throws(TidemarkError) {
    try await backup(to: Self.path(of: url))
  }

  private static func path(of url: URL) throws(TidemarkError) -> String {
    guard url.isFileURL else {
      throw TidemarkError(.invalidArgument, "the URL is not that of a file; give a file URL")
    }
    return url.path(percentEncoded: false)
  }
}
