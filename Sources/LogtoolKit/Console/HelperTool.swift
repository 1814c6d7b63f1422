/// The executable that can speak to URLs.
///
/// An executable that speaks HTTP takes longer to start than most commands take to run. So the tool
/// itself cannot, and a command that needs it goes to another executable in the same directory,
/// which is the same tool otherwise: as git does with its remote helpers.
enum HelperTool {
  static let name = "logtool-http"

  /// Replaces the process by the helper.
  /// - Throws: why that cannot be.
  static func run(_ arguments: [String]) throws(ToolError) {
    guard let own = SystemCalls.executablePath(), let slash = own.lastIndex(of: "/") else {
      throw ToolError(.failed, "cannot find \(name), which speaks to URLs: give its path yourself")
    }
    let path = own[...slash] + name
    do throws(SystemCalls.Failure) {
      try SystemCalls.execute(String(path), [name] + arguments)
    } catch {
      throw ToolError(
        .failed,
        "URLs take the executable \(name) beside logtool; \(path) cannot be run: \(error.reason)")
    }
  }
}
