#include "cli/commands.hpp"
#include "model/base/standard_streams.hpp"

int main(int count, char** arguments) {
  stratplan::prepare_standard_streams();
  return stratplan::run_program({arguments, arguments + count});
}
