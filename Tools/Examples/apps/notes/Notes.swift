import ExamplePrograms

@main
enum Notes {
  static func main() async { await NotesProgram.main() }
}
